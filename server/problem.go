package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/odata/multipart"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/cors"
	"github.com/tablerock-db/tablerock/server/internal/media"
	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/server/internal/uri"
	"github.com/tablerock-db/tablerock/store"
)

// problem is a refusal or a failure in the protocol's words. It is never changed
// once made, so that one value can answer many requests.
type problem struct {
	status  int
	code    string
	message string

	early     bool   // found before the request was understood: no Cache-Control, no preference
	refusal   bool   // of the client, which gets XML if nothing else is known of it
	front     bool   // answered in front of the Table layer: no version, the code in a header
	bare      bool   // without an id
	page      bool   // answered by an HTML page, not by an error document
	executed  bool   // of a batch: found by looking at stored entities
	challenge string // WWW-Authenticate
	allow     string // Allow
	retry     string // Retry-After
	cause     error  // of a failure that is not the client's; for logs alone
}

func (p *problem) Error() string { return p.code + ": " + p.message }

// Codes that several problems have.
const (
	codeInvalidInput  = "InvalidInput"
	codeOutOfRange    = "OutOfRangeInput"
	codeNotFound      = "ResourceNotFound"
	codeTableNotFound = "TableNotFound"
)

// Messages that several problems have.
const (
	inputNotValid   = "One of the request inputs is not valid."
	inputOutOfRange = "One of the request inputs is out of range."
	notProcessed    = "An error occurred while processing this request."
	keyCount        = "The number of keys specified in the URI does not match number of key properties for the resource '%s.%s'."
	propertyTwice   = "A property is specified more than one time."
	outOfRange      = "The '%s' parameter of value '%s' is out of range."
)

func bad(code, message string) *problem {
	return &problem{status: http.StatusBadRequest, code: code, message: message}
}

// The problems that need no detail.
var (
	errInput          = bad(codeInvalidInput, inputNotValid)
	errProcessing     = &problem{status: http.StatusBadRequest, code: codeInvalidInput, message: notProcessed, early: true}
	errKeyType        = &problem{status: http.StatusBadRequest, code: codeInvalidInput, message: inputNotValid, early: true}
	errOutOfRange     = &problem{status: http.StatusBadRequest, code: codeOutOfRange, message: inputOutOfRange, early: true}
	errNotFound       = &problem{status: http.StatusNotFound, code: codeNotFound, message: "The specified resource does not exist."}
	errNoTable        = &problem{status: http.StatusNotFound, code: codeTableNotFound, message: "The table specified does not exist.", early: true}
	errTableExists    = &problem{status: http.StatusConflict, code: "TableAlreadyExists", message: "The table specified already exists."}
	errEntityExists   = &problem{status: http.StatusConflict, code: "EntityAlreadyExists", message: "The specified entity already exists."}
	errCondition      = &problem{status: http.StatusPreconditionFailed, code: "UpdateConditionNotSatisfied", message: "The update condition specified in the request was not satisfied."}
	errValueTooLarge  = bad("PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.")
	errBodyTooLarge   = &problem{status: http.StatusRequestEntityTooLarge, code: "RequestBodyTooLarge", message: "The request body is too large and exceeds the maximum permissible limit."}
	errHeaderValue    = bad("InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
	errMediaType      = &problem{status: http.StatusUnsupportedMediaType, code: "MediaTypeNotSupported", message: "None of the provided media types are supported", early: true}
	errAtom           = &problem{status: http.StatusUnsupportedMediaType, code: "AtomFormatNotSupported", message: "Atom format is not supported.", early: true}
	errNoJSON         = &problem{status: http.StatusUnsupportedMediaType, code: "JsonFormatNotSupported", message: "JSON format is not supported."}
	errVerbose        = &problem{status: http.StatusUnsupportedMediaType, code: "JsonVerboseFormatNotSupported", message: "JSON Verbose format is not supported.", early: true}
	errPropertyName   = &problem{status: http.StatusBadRequest, code: "PropertyNameInvalid", message: "The property name is invalid.", early: true}
	errUnknownXMethod = bad("XMethodIncorrectValue", "The specified X-HTTP-Method is invalid.")
	errManyXMethods   = bad("XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
	errXMethodNotPost = bad("XMethodNotUsingPost", "The request uses X-HTTP-Method with an HTTP verb other than POST.")
	errNotImplemented = &problem{status: http.StatusNotImplemented, code: "NotImplemented", message: "The requested operation is not implemented on the specified resource."}
	errURI            = bad("InvalidUri", "The requested URI does not represent any resource on the server.")
	errNeedValue      = bad("PropertiesNeedValue", "The values are not specified for all properties in the entity.")
	errNoETag         = bad(codeInvalidInput, "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.")
	errURLSyntax      = &problem{status: http.StatusBadRequest, code: codeInvalidInput, message: "Bad Request - Error in query syntax.", early: true}
	errInvalidURL     = &problem{status: http.StatusBadRequest, page: true}
	errSecondary      = &problem{status: http.StatusForbidden, code: "WriteOperationNotSupportedOnSecondary", message: "Write operations are not supported on the secondary endpoint."}
	errBusy           = &problem{status: http.StatusServiceUnavailable, code: "ServerBusy", message: "The server is currently unable to receive requests. Please retry your request.", retry: "1"}
)

// internalError is the answer to a failure that is not the client's; cause goes
// to the log and not to the client.
func internalError(cause error) *problem {
	return &problem{
		status: http.StatusInternalServerError, code: "InternalError",
		message: "Server encountered an internal error. Please try again after some time.", cause: cause,
	}
}

// methodProblem refuses a method for which the resource has no operation.
func methodProblem(asked route) *problem {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, methodMerge, http.MethodDelete} {
		for r := range routes {
			if r == (route{asked.kind, m, asked.comp}) {
				methods = append(methods, m)
				break
			}
		}
	}
	return &problem{
		status: http.StatusMethodNotAllowed, code: "MethodNotAllowed",
		message: "The requested method is not allowed on the specified resource.", allow: strings.Join(methods, ", "),
	}
}

// problemOf is the one map from an error to its answer. An error that it does
// not know is a failure of this program: status 500, and logged.
func problemOf(err error) *problem {
	var (
		p       *problem
		op      *store.OpError
		model   *edm.Error
		payload *odata.Error
		parts   *multipart.Error
		syntax  *filter.Error
		doc     *service.Error
		refusal *sharedkey.Refusal
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, media.ErrUnsupported):
		return errMediaType
	case errors.Is(err, media.ErrAtom):
		return errAtom
	case errors.Is(err, media.ErrVerbose):
		return errVerbose
	case errors.Is(err, uri.ErrNothing):
		return errURI
	case errors.Is(err, uri.ErrSyntax):
		return errURLSyntax
	case errors.Is(err, uri.ErrToken), errors.Is(err, uri.ErrQuery):
		return errInput
	case errors.Is(err, uri.ErrTimeout):
		return errQueryValue
	case errors.Is(err, uri.ErrOption):
		return errNotImplemented
	case errors.Is(err, cors.ErrHeader):
		return errCorsHeader
	case errors.Is(err, cors.ErrNoRule):
		return errNoCors
	case errors.As(err, &refusal):
		return &problem{
			status: refusal.Status, code: refusal.Code, message: refusal.Message,
			challenge: refusal.Challenge, refusal: true, front: refusal.Front, bare: refusal.Bare,
		}
	case errors.As(err, &op):
		q := *problemOf(op.Err)
		q.executed = op.Executed
		return &q
	case errors.As(err, &model):
		return modelProblem(model)
	case errors.As(err, &payload):
		return payloadProblem(payload)
	case errors.As(err, &parts):
		return bad(codeInvalidInput, inputNotValid)
	case errors.As(err, &doc):
		return bad("InvalidXmlDocument", "XML specified is not syntactically valid.")
	case errors.As(err, &syntax):
		return filterProblem(syntax)
	}
	return storeProblem(err)
}

// storeProblem maps the sentinels of store.
func storeProblem(err error) *problem {
	switch {
	case errors.Is(err, store.ErrTableExists):
		return errTableExists
	case errors.Is(err, store.ErrTableNotFound):
		return errNoTable
	case errors.Is(err, store.ErrEntityExists):
		return errEntityExists
	case errors.Is(err, store.ErrEntityNotFound):
		return errNotFound
	case errors.Is(err, store.ErrPrecondition):
		return errCondition
	case errors.Is(err, store.ErrNoSpace), errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrClosed):
		p := *errBusy
		p.cause = err
		return &p
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, store.ErrOutcomeUnknown):
		return &problem{
			status: http.StatusInternalServerError, code: "OperationTimedOut",
			message: "The operation could not be completed within the permitted time.", cause: err,
		}
	}
	return internalError(err)
}

// modelProblem maps a broken rule of the data model.
func modelProblem(e *edm.Error) *problem {
	switch e.Rule {
	case edm.RuleTableName:
		if strings.EqualFold(e.Name, "tables") {
			return errInput
		}
		return bad("InvalidResourceName", "The specifed resource name contains invalid characters.")
	case edm.RuleTableNameLength:
		return bad(codeOutOfRange, "The specified resource name length is not within the permissible limits.")
	case edm.RuleKey:
		return errOutOfRange
	case edm.RuleKeyLength, edm.RuleValueSize:
		return errValueTooLarge
	case edm.RulePropertyName:
		return errPropertyName
	case edm.RulePropertyNameLength:
		return bad("PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
	case edm.RulePropertyCount:
		return bad("TooManyProperties", "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.")
	case edm.RulePropertyDuplicate:
		return bad("DuplicatePropertiesSpecified", propertyTwice)
	case edm.RuleEntitySize:
		return bad("EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")
	case edm.RuleRange:
		return errOutOfRange
	case edm.RuleBatchCount:
		return bad(codeInvalidInput, "The batch request operation exceeds the maximum 100 changes per change set.")
	case edm.RuleBatchBytes:
		return errBodyTooLarge
	case edm.RuleBatchPartition:
		return bad("CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")
	case edm.RuleBatchDuplicate:
		return bad("InvalidDuplicateRow", "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")
	case edm.RuleUTF8, edm.RuleMetaSize:
		return errInput
	}
	return errInput
}

// payloadProblem maps what is wrong with an entity's JSON.
func payloadProblem(e *odata.Error) *problem {
	key := e.Member == edm.PartitionKeyName || e.Member == edm.RowKeyName
	switch e.Kind {
	case odata.Duplicate:
		if key {
			return bad("DuplicateKeyPropertySpecified", propertyTwice)
		}
		return modelProblem(&edm.Error{Rule: edm.RulePropertyDuplicate})
	case odata.MissingKey, odata.MissingName:
		return errNeedValue
	case odata.OutOfRange:
		return bad(codeOutOfRange, fmt.Sprintf(outOfRange, e.Member, e.Got))
	case odata.TooManyNames:
		return modelProblem(&edm.Error{Rule: edm.RulePropertyCount})
	case odata.BadValue:
		if key {
			return errKeyType
		}
	}
	return errProcessing
}

// filterProblem maps the refusal of a $filter.
func filterProblem(e *filter.Error) *problem {
	if e.Kind == filter.NotImplemented {
		return errNotImplemented
	}
	p := bad(codeInvalidInput, e.Message)
	p.early = true
	return p
}
