package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Error is the answer of a server that refuses a request. errors.Is finds the error of
// package store that it means, and fs.ErrPermission for a refused credential.
type Error struct {
	Status  int
	Code    string // of the protocol, such as EntityAlreadyExists; "" if there is none
	Message string // the first line, shortened
	cause   error
}

// Error returns the answer.
func (e *Error) Error() string {
	text := "the server answers " + strconv.Itoa(e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns the error of package store.
func (e *Error) Unwrap() error { return e.cause }

// answer returns the error of a response, and the index that the message of a batch begins
// with, or 0.
func answer(status int, header http.Header, body []byte) (e *Error, index int) {
	e = &Error{Status: status, Code: header.Get("x-ms-error-code")}
	code, message := parseFailure(body)
	if code != "" {
		e.Code = code
	}
	if digits, rest, ok := strings.Cut(message, ":"); ok && len(digits) < 4 {
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 {
			index, message = n, rest
		}
	}
	e.Code, e.Message = printable(e.Code, 64), printable(message, 300)
	e.cause = causeOf(e)
	return e, index
}

// maxFailure limits the body of an error that is parsed.
const maxFailure = 64 << 10

// parseFailure returns the code and the message of a body in JSON or XML, "" if it is
// neither.
func parseFailure(body []byte) (code, message string) {
	type failure struct {
		Code    string `json:"code" xml:"code"`
		Message struct {
			Value string `json:"value" xml:",chardata"`
		} `json:"message" xml:"message"`
		// Storage writes these names for errors of authorization.
		Upper        string `json:"-" xml:"Code"`
		UpperMessage string `json:"-" xml:"Message"`
	}
	if len(body) > maxFailure {
		return "", ""
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	if bytes.HasPrefix(body, []byte("{")) {
		var f struct {
			Error failure `json:"odata.error"`
		}
		if json.Unmarshal(body, &f) == nil {
			return f.Error.Code, f.Error.Message.Value
		}
		return "", ""
	}
	var f failure
	if !bytes.HasPrefix(body, []byte("<")) || xml.Unmarshal(body, &f) != nil {
		return "", ""
	}
	return f.Code + f.Upper, f.Message.Value + f.UpperMessage
}

// printable returns the first line of text, without its period and control characters, and
// at most n bytes.
func printable(text string, n int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "..."
	}
	return text
}

// causeOf returns the error of package store for an answer, nil if there is none.
func causeOf(e *Error) error {
	switch e.Code {
	case "TableNotFound":
		return store.ErrTableNotFound
	case "ResourceNotFound", "EntityNotFound":
		return store.ErrEntityNotFound
	case "TableAlreadyExists":
		return store.ErrTableExists
	case "EntityAlreadyExists":
		return store.ErrEntityExists
	case "UpdateConditionNotSatisfied", "ConditionNotMet":
		return store.ErrPrecondition
	case "TableBeingDeleted":
		return store.ErrUnavailable
	case "EntityTooLarge":
		return &edm.Error{Rule: edm.RuleEntitySize, Limit: edm.MaxEntityBytes, Got: "a larger entity after the write"}
	case "TooManyProperties":
		return &edm.Error{Rule: edm.RulePropertyCount, Limit: edm.MaxProperties, Got: "more properties after the write"}
	case "RequestBodyTooLarge", "ContentLengthExceeded":
		return store.ErrTooLarge
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fs.ErrPermission
	case http.StatusRequestEntityTooLarge:
		return store.ErrTooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return store.ErrUnavailable
	}
	return nil
}

// refuses reports whether a busy server has not executed a request.
func refuses(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		body, err := runtime.Payload(resp)
		if err != nil {
			return false
		}
		e, _ := answer(resp.StatusCode, resp.Header, body)
		return e.Code != ""
	}
	return false
}

// setOutcome sets the cause of an answer to a write that the server may have executed. A
// server that refuses a write because it is busy names a code of the protocol. By RFC 9110,
// section 15.5.9, a 408 says that the request did not arrive whole, but proxies also answer
// it when the server behind them takes too long.
func (e *Error) setOutcome() {
	if (e.Status >= 500 || e.Status == http.StatusRequestTimeout) && (e.cause == nil || e.Code == "") {
		e.cause = store.ErrOutcomeUnknown
	}
}

// failure returns the error of x, whose call in the SDK failed with err, and the index that
// its message names. For a write, the error says whether the server may have executed it.
func (s *Store) failure(ctx context.Context, x *exchange, err error, write bool) (index int, _ error) {
	if unsigned := (*IdentityError)(nil); errors.As(err, &unsigned) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("%s: %w", s.options.Name, unsigned)
	}
	if x.wrong != "" {
		return 0, &AddressError{s.options.Name, x.wrong}
	}
	if x.state == answered && x.reply != nil && x.status >= 300 {
		e, index := answer(x.status, x.header, x.reply)
		if e.Code != "" {
			s.answered.Store(true)
		}
		switch {
		case write:
			e.setOutcome()
		case x.status == http.StatusRequestTimeout, x.status == http.StatusBadGateway, x.status == http.StatusGatewayTimeout, e.Code == "OperationTimedOut":
			e.cause = store.ErrUnavailable // a read has no effect
		}
		return index, e
	}
	err = fmt.Errorf("%s: %w", s.options.Name, err)
	switch {
	case x.state <= interrupted && ctx.Err() != nil:
		return 0, ctx.Err()
	case x.state <= interrupted:
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case write:
		return 0, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case x.reply != nil:
		return 0, fmt.Errorf("%s answers a read with the status %d and the type %q, as no Table server does; check the address",
			s.options.Name, x.status, x.header.Get("Content-Type"))
	case !errors.Is(err, errReplyTooLong): // cut, perhaps in its body
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return 0, err
}
