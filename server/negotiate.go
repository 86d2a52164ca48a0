package server

import (
	"mime"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/internal/odata"
)

// preference is what a Prefer header asks of an insert.
type preference uint8

const (
	noPreference preference = iota
	returnContent
	returnNoContent
)

// String returns the preference as Preference-Applied states it.
func (p preference) String() string {
	switch p {
	case returnContent:
		return "return-content"
	case returnNoContent:
		return "return-no-content"
	case noPreference:
	}
	return ""
}

func preferenceOf(values []string) preference {
	for _, v := range values {
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "return-content":
			return returnContent
		case "return-no-content":
			return returnNoContent
		}
	}
	return noPreference
}

// contentTypes are what answers say of themselves, by level.
var contentTypes = [...]string{
	odata.None:    "application/json;odata=nometadata;streaming=true;charset=utf-8",
	odata.Minimal: "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
	odata.Full:    "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
}

// negotiate chooses the form of the answer, and refuses query options that the
// service does not have.
func (x *exchange) negotiate() error {
	x.level = odata.Minimal
	if x.operation.xml {
		return nil
	}
	x.prefer = preferenceOf(x.r.Header["Prefer"])
	for name, values := range x.query {
		if !strings.HasPrefix(name, "$") {
			continue
		}
		switch name {
		case "$filter", "$select", "$top", "$format":
			if len(values) > 1 {
				return errInput
			}
		default:
			return errNotImplemented
		}
	}
	accept := x.r.Header["Accept"]
	if format := x.query.Get("$format"); format != "" {
		accept = []string{format}
	}
	if x.target.kind == batch {
		return nil // each part has its own, and the envelope has one form
	}
	level, err := levelOf(accept)
	if err != nil {
		return err
	}
	x.level = level
	return nil
}

// levelNames are the values of a media type's parameter odata.
var levelNames = map[string]odata.Level{
	"nometadata": odata.None, "minimalmetadata": odata.Minimal, "fullmetadata": odata.Full,
}

// levels are the media types that are asked for nearly always.
var levels = map[string]odata.Level{
	"application/json;odata=nometadata":       odata.None,
	"application/json;odata=minimalmetadata":  odata.Minimal,
	"application/json;odata=fullmetadata":     odata.Full,
	"application/json; odata=minimalmetadata": odata.Minimal,
	"application/json":                        odata.Minimal,
	"*/*":                                     odata.Minimal,
}

// levelOf reads Accept: the first media type that JSON can answer wins, one that
// names a level before one that does not. Without any, the answer is minimal.
func levelOf(accept []string) (odata.Level, error) {
	if len(accept) == 0 {
		return odata.Minimal, nil
	}
	if level, ok := levels[accept[0]]; ok && len(accept) == 1 {
		return level, nil
	}
	found := false
	var refusal error = errMediaType
	for _, item := range strings.Split(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(item)
		switch {
		case strings.TrimSpace(item) == "":
			found = true
		case err != nil:
		case kind == "application/json":
			text, ok := params["odata"]
			level, known := levelNames[text]
			switch {
			case known:
				return level, nil
			case ok && text == "verbose":
				refusal = errVerbose
			case !ok:
				found = true
			}
		case kind == "*/*" || kind == "application/*":
			found = true
		case kind == "application/atom+xml" || kind == "application/xml":
			refusal = errAtom
		}
	}
	if !found {
		return odata.None, refusal
	}
	return odata.Minimal, nil
}

// wantsJSON reports whether the client said that it reads JSON: front-end
// refusals are XML otherwise.
func wantsJSON(r *http.Request) bool {
	for _, v := range r.Header["Accept"] {
		if strings.Contains(v, "application/json") {
			return true
		}
	}
	return false
}

// checkContentType refuses bodies that are not JSON in UTF-8. A client that does
// not say what it sends is taken to send that.
func checkContentType(values []string) error {
	if len(values) == 0 || len(values) == 1 && (values[0] == "application/json" || values[0] == "") {
		return nil
	}
	kind, params, err := mime.ParseMediaType(values[0])
	charset, ok := params["charset"]
	switch {
	case len(values) > 1 || err != nil:
		return errMediaType
	case kind == "application/atom+xml" || kind == "application/xml":
		return errAtom
	case kind != "application/json", ok && !strings.EqualFold(charset, "utf-8"):
		return errMediaType
	}
	return nil
}
