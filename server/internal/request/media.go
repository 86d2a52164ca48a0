package request

import (
	"cmp"
	"errors"
	"mime"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/internal/odata"
)

// Errors of media types.
var (
	ErrUnsupported = errors.New("media type not supported")
	ErrAtom        = errors.New("media type of Atom not supported")
	ErrVerbose     = errors.New("verbose JSON not supported")
)

// contentTypes are the media types of responses, by level.
var contentTypes = [...]string{
	odata.None:    "application/json;odata=nometadata;streaming=true;charset=utf-8",
	odata.Minimal: "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
	odata.Full:    "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
}

// ContentType returns the Content-Type of a response of that level.
func ContentType(level odata.Level) string { return contentTypes[level] }

// levelNames are the values of a media type's parameter odata.
var levelNames = map[string]odata.Level{
	"nometadata": odata.None, "minimalmetadata": odata.Minimal, "fullmetadata": odata.Full,
}

// levels has the values of nearly all Accept headers, which then need no parsing.
var levels = map[string]odata.Level{
	"application/json;odata=nometadata":       odata.None,
	"application/json;odata=minimalmetadata":  odata.Minimal,
	"application/json;odata=fullmetadata":     odata.Full,
	"application/json; odata=minimalmetadata": odata.Minimal,
	"application/json":                        odata.Minimal,
	"*/*":                                     odata.Minimal,
}

// formats are the names of media types that $format can have (MS-ODATA, 2.2.3.6.1.5).
var formats = map[string]string{
	"json": "application/json", "verbosejson": "application/json;odata=verbose", "atom": "application/atom+xml", "xml": "application/xml",
}

// maxAcceptBytes is more than any client has in Accept. What follows is ignored: each operation
// of a batch can have 64 KiB.
const maxAcceptBytes = 1 << 10

// LevelOf returns the level of $format or, if that is empty, of Accept: the level of the
// first JSON media type that names one, else minimal if any accepts JSON. An empty Accept
// is minimal. The error is one of those above.
func LevelOf(format string, accept []string) (odata.Level, error) {
	if format != "" {
		accept = []string{cmp.Or(formats[format], format)}
	}
	if len(accept) == 0 {
		return odata.Minimal, nil
	}
	if level, ok := levels[accept[0]]; ok && len(accept) == 1 {
		return level, nil
	}
	found := false
	var refusal error = ErrUnsupported
	text := strings.Join(accept, ",")
	for item := range strings.SplitSeq(text[:min(len(text), maxAcceptBytes)], ",") {
		kind, params, err := mime.ParseMediaType(item)
		switch {
		case strings.TrimSpace(item) == "":
			found = true
		case err != nil:
		case kind == "application/json":
			name, ok := params["odata"]
			name = strings.ToLower(name)
			level, known := levelNames[name]
			switch {
			case known:
				return level, nil
			case ok && name == "verbose":
				refusal = ErrVerbose
			case !ok:
				found = true
			}
		case kind == "*/*" || kind == "application/*":
			found = true
		case kind == "application/atom+xml" || kind == "application/xml":
			refusal = ErrAtom
		}
	}
	if !found {
		return odata.None, refusal
	}
	return odata.Minimal, nil
}

// WantsJSON reports whether Accept contains JSON. If not, the service's front end sends its
// errors in XML.
func WantsJSON(accept []string) bool {
	return slices.ContainsFunc(accept, func(s string) bool { return strings.Contains(s, "application/json") })
}

// AcceptsAny reports whether Accept names no media type: it is missing or empty, or all of
// its items are wildcards.
func AcceptsAny(accept []string) bool {
	for _, item := range strings.Split(strings.Join(accept, ","), ",") {
		kind, _, _ := strings.Cut(item, ";")
		if kind = strings.TrimSpace(kind); kind != "" && kind != "*/*" {
			return false
		}
	}
	return true
}

// CheckJSON returns an error unless values, of Content-Type, are JSON in UTF-8 or are
// missing or empty.
func CheckJSON(values []string) error {
	if len(values) == 0 || len(values) == 1 && (values[0] == "application/json" || values[0] == "") {
		return nil
	}
	kind, params, err := mime.ParseMediaType(values[0])
	charset, ok := params["charset"]
	switch {
	case len(values) > 1 || err != nil:
		return ErrUnsupported
	case kind == "application/atom+xml" || kind == "application/xml":
		return ErrAtom
	case kind != "application/json", ok && !strings.EqualFold(charset, "utf-8"):
		return ErrUnsupported
	}
	return nil
}
