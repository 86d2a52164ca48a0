package server

import (
	"net/http"

	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// serviceProperties is GET /?restype=service&comp=properties.
func (x *exchange) serviceProperties() error {
	p, err := x.account.properties.Get(x.r.Context())
	if err != nil {
		return err
	}
	x.setHead()
	x.out.Buf = documents.AppendProperties(x.out.Buf[:0], *p)
	return x.send(http.StatusOK, applicationXML)
}

// setServiceProperties is PUT /?restype=service&comp=properties.
func (x *exchange) setServiceProperties() error {
	if err := x.readBody(); err != nil {
		return err
	}
	if err := x.account.properties.Merge(x.r.Context(), x.body.Bytes); err != nil {
		return err
	}
	x.setHead()
	return x.sendEmpty(http.StatusAccepted)
}

// serviceStats is GET /?restype=service&comp=stats. The secondary endpoint has the same
// store as the primary, so it never lags.
func (x *exchange) serviceStats() error {
	if !x.Secondary {
		return problem.ErrQueryValue
	}
	x.setHead()
	x.out.Buf = documents.AppendStats(x.out.Buf[:0], x.start)
	return x.send(http.StatusOK, applicationXML)
}
