package server

import (
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/media"
	"github.com/tablerock-db/tablerock/server/internal/uri"
)

// negotiate chooses the form of the answer, and refuses query options that the
// service does not have.
func (x *exchange) negotiate() error {
	x.level = odata.Minimal
	if x.operation.xml {
		return nil
	}
	x.prefer = media.PreferenceOf(x.r.Header["Prefer"])
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
	if x.target.Kind == uri.Batch {
		return nil // each part has its own, and the envelope has one form
	}
	level, err := media.LevelOf(accept)
	if err != nil {
		return err
	}
	x.level = level
	return nil
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
