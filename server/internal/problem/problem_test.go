package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err             error
		status          int
		code            string
		executed, cause bool
	}{
		{ErrSecondary, http.StatusForbidden, "InsufficientAccountPermissions", false, false},
		{request.ErrToken, http.StatusBadRequest, "InvalidInput", false, false},
		{&sharedkey.Refusal{Status: http.StatusForbidden, Code: "AuthenticationFailed"}, http.StatusForbidden, "AuthenticationFailed", false, false},
		{&odata.Error{Kind: odata.TooManyNames}, http.StatusBadRequest, "TooManyProperties", false, false},
		{&edm.Error{Rule: edm.RuleTableName, Name: "TABLES"}, http.StatusBadRequest, "InvalidInput", false, false},
		{&edm.Error{Rule: edm.RuleTableName, Name: "a-b"}, http.StatusBadRequest, "InvalidResourceName", false, false},
		{&store.OpError{Err: store.ErrEntityExists, Executed: true}, http.StatusConflict, "EntityAlreadyExists", true, false},
		{&store.OpError{Err: store.ErrTableNotFound}, http.StatusNotFound, "TableNotFound", false, false},
		{store.ErrNoSpace, http.StatusServiceUnavailable, "ServerBusy", false, true},
		{store.ErrUnavailable, http.StatusServiceUnavailable, "ServerBusy", false, true},
		{errors.Join(context.DeadlineExceeded, store.ErrUnavailable), http.StatusServiceUnavailable, "ServerBusy", false, true},
		{errors.Join(store.ErrNoSpace, store.ErrOutcomeUnknown), http.StatusInternalServerError, "OperationTimedOut", false, true},
		{store.ErrOutcomeUnknown, http.StatusInternalServerError, "OperationTimedOut", false, true},
		{context.DeadlineExceeded, http.StatusInternalServerError, "OperationTimedOut", false, true},
		{store.ErrCorrupt, http.StatusInternalServerError, "InternalError", false, true},
		{errors.New("unknown error"), http.StatusInternalServerError, "InternalError", false, true},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			p := Of(fmt.Errorf("step: %w", c.err))
			if p.Status != c.status || p.Code != c.code || p.Executed != c.executed || (p.Cause != nil) != c.cause {
				t.Errorf("got %+v, want %d %s, executed %v, a cause %v", p, c.status, c.code, c.executed, c.cause)
			}
			if c.cause && !errors.Is(p.Cause, c.err) {
				t.Errorf("the cause is %v, want %v", p.Cause, c.err)
			}
		})
	}
	if ErrEntityExists.Executed || ErrBusy.Cause != nil {
		t.Error("a shared problem was modified")
	}
}
