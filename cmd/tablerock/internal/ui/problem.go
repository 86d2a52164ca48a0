package ui

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// problemOf returns the function for explorer.Options.Problem where the store is the server at url.
// What only that server can explain has the text of its error, which has no secret; for package
// server it would be an internal error or one of a busy server.
func problemOf(url string) func(error) (status int, code, message string) {
	return func(err error) (status int, code, message string) {
		status, code, message = server.Problem(err)
		if status < http.StatusInternalServerError {
			return status, code, message
		}
		var answer *remote.Error
		var unsigned *remote.IdentityError
		text := err.Error()
		if errors.As(err, &answer) {
			text, code = answer.Error(), cmp.Or(answer.Code, code)
		}
		switch {
		case errors.Is(err, store.ErrOutcomeUnknown):
			return status, code, "It is not known whether the server has stored the write. Look before you repeat it."
		case errors.As(err, &unsigned):
			return http.StatusForbidden, "AuthenticationFailed", text + "."
		case answer != nil && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden):
			return http.StatusForbidden, code, text + "." // 401 would end the session of the pages
		case errors.Is(err, store.ErrUnavailable):
			return http.StatusServiceUnavailable, code, text + "."
		case answer != nil, strings.Contains(text, url):
			return http.StatusBadGateway, code, text + "."
		}
		return status, code, message
	}
}
