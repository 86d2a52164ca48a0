package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// negotiate chooses the form of the response, and refuses query options that the
// service does not have.
func (x *exchange) negotiate() error {
	if x.operation.xml {
		return nil
	}
	if x.method == http.MethodPost && x.target.Kind != request.Batch { // only inserts honor Prefer
		x.prefer = request.PreferenceOf(x.r.Header["Prefer"])
	}
	if err := request.CheckOptions(x.query); err != nil {
		return err
	}
	var err error
	x.level, err = request.LevelOf(x.query.Get("$format"), x.r.Header["Accept"])
	switch named := len(x.r.Header["X-Ms-Version"])+len(x.query["api-version"]) > 0; {
	case err != nil && x.target.Kind != request.Batch: // each operation of a batch has its own level
		return err
	case named && x.version < oldestVersion:
		return problem.ErrNoJSON
	}
	return nil
}
