package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/media"
	"github.com/tablerock-db/tablerock/server/internal/uri"
)

// negotiate chooses the form of the answer, and refuses query options that the
// service does not have.
func (x *exchange) negotiate() error {
	if x.operation.xml {
		return nil
	}
	x.prefer = media.PreferenceOf(x.r.Header["Prefer"])
	if err := uri.CheckOptions(x.query); err != nil {
		return err
	}
	var err error
	x.level, err = levelOf(x.query, x.r.Header["Accept"])
	switch named := len(x.r.Header["X-Ms-Version"])+len(x.query["api-version"]) > 0; {
	case err != nil && x.target.Kind != uri.Batch: // each part has its own, and the envelope has one form
		return err
	case named && x.version < oldestVersion:
		return errNoJSON
	}
	return nil
}

// levelOf returns the level of metadata that a query or else an Accept header asks for.
func levelOf(query url.Values, accept []string) (odata.Level, error) {
	if format := query.Get("$format"); format != "" {
		accept = []string{format}
	}
	return media.LevelOf(accept)
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
