package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
)

// versionACLMedia is the first version that sets an access policy only for a client whose
// Accept names a media type. That a missing Accept is refused is known of that version only,
// and Terraform's client sends none with later ones.
const versionACLMedia = "2019-07-07"

// negotiate chooses the form of the response, and refuses query options that the
// service does not have.
func (x *exchange) negotiate() error {
	named := len(x.r.Header["X-Ms-Version"])+len(x.query["api-version"]) > 0
	if x.operation.xml {
		accept, sets := x.r.Header["Accept"], x.target.Kind == request.TableACL && x.method == http.MethodPut
		refuses := named && (x.version == versionACLMedia || x.version > versionACLMedia && len(accept) > 0)
		if sets && refuses && request.AcceptsAny(accept) {
			return problem.ErrMediaType
		}
		return nil
	}
	if x.target.Kind != request.Batch { // each operation of a batch has its own preference
		x.prefer = request.PreferenceOf(x.method, x.r.Header["Prefer"])
	}
	if err := request.CheckOptions(x.query); err != nil {
		return err
	}
	var err error
	x.level, err = request.LevelOf(x.query.Get("$format"), x.r.Header["Accept"])
	switch {
	case err != nil && x.target.Kind != request.Batch: // each operation of a batch has its own level
		return err
	case named && x.version < oldestVersion:
		return problem.ErrNoJSON
	}
	return nil
}
