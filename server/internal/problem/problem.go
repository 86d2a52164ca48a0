// Package problem maps errors to the error responses of the Table service.
package problem

import (
	"fmt"
	"net/http"
	"strings"
)

// Problem is an error response of the protocol. It is immutable, since requests share the
// values below.
type Problem struct {
	Status  int
	Code    string
	Message string

	Early     bool   // found before the request was parsed: no Cache-Control, no Preference-Applied
	Refusal   bool   // of the credentials or a parameter: in XML unless the client accepts JSON
	Front     bool   // from the service's front end: no version, the code in a header
	Bare      bool   // without the id of the request
	Full      bool   // with Front: with the id and the version nevertheless
	Page      bool   // the document is an HTML page
	Executed  bool   // in a batch: depends on stored entities
	Challenge string // WWW-Authenticate
	Allow     string // Allow
	Retry     string // Retry-After
	Cause     error  // of an internal error; for logs only
}

// Error returns code and message.
func (p *Problem) Error() string { return p.Code + ": " + p.Message }

// Codes that several problems have.
const (
	CodeInvalidInput = "InvalidInput"
	codeOutOfRange   = "OutOfRangeInput"
	codeNotFound     = "ResourceNotFound"
)

// Messages that several problems have.
const (
	notFound      = "The specified resource does not exist."
	inputNotValid = "One of the request inputs is not valid."
	propertyTwice = "A property is specified more than one time."
	badQueryValue = "Value for one of the query parameters specified in the request URI is invalid."
)

// Bad returns a problem of status 400.
func Bad(code, message string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Message: message}
}

// Problems without details of the request.
var (
	ErrInput        = Bad(CodeInvalidInput, inputNotValid)
	ErrProcessing   = &Problem{Status: http.StatusBadRequest, Code: CodeInvalidInput, Message: "An error occurred while processing this request.", Early: true}
	ErrKeyType      = &Problem{Status: http.StatusBadRequest, Code: CodeInvalidInput, Message: inputNotValid, Early: true}
	ErrOutOfRange   = &Problem{Status: http.StatusBadRequest, Code: codeOutOfRange, Message: "One of the request inputs is out of range.", Early: true}
	ErrNotFound     = &Problem{Status: http.StatusNotFound, Code: codeNotFound, Message: notFound}
	ErrNoTable      = &Problem{Status: http.StatusNotFound, Code: "TableNotFound", Message: "The table specified does not exist.", Early: true}
	ErrTableExists  = &Problem{Status: http.StatusConflict, Code: "TableAlreadyExists", Message: "The table specified already exists."}
	ErrEntityExists = &Problem{Status: http.StatusConflict, Code: "EntityAlreadyExists", Message: "The specified entity already exists."}
	ErrCondition    = &Problem{
		Status: http.StatusPreconditionFailed, Code: "UpdateConditionNotSatisfied",
		Message: "The update condition specified in the request was not satisfied.",
	}
	ErrValueTooLarge = Bad("PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "+
		"encoded and the maximum number of characters should be 32K or less.")
	ErrBodyTooLarge = &Problem{
		Status: http.StatusRequestEntityTooLarge, Code: "RequestBodyTooLarge",
		Message: "The request body is too large and exceeds the maximum permissible limit.",
	}
	// ErrVersion refuses x-ms-version. Its response has no headers but those of the document.
	ErrVersion = Bad("InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
	// ErrConditionNotMet refuses an If-Match that looks like an ETag of the service and has no time.
	ErrConditionNotMet = &Problem{
		Status: http.StatusPreconditionFailed, Code: "ConditionNotMet",
		Message: "The condition specified using HTTP conditional header(s) is not met.", Early: true,
	}
	// ErrUnsignedPath refuses a request without credentials whose path names no resource.
	ErrUnsignedPath = &Problem{Status: http.StatusNotFound, Code: codeNotFound, Message: notFound, Refusal: true, Front: true, Full: true}
	ErrMediaType    = &Problem{
		Status: http.StatusUnsupportedMediaType, Code: "MediaTypeNotSupported",
		Message: "None of the provided media types are supported", Early: true,
	}
	ErrAtom    = &Problem{Status: http.StatusUnsupportedMediaType, Code: "AtomFormatNotSupported", Message: "Atom format is not supported.", Early: true}
	ErrNoJSON  = &Problem{Status: http.StatusUnsupportedMediaType, Code: "JsonFormatNotSupported", Message: "JSON format is not supported."}
	ErrVerbose = &Problem{
		Status: http.StatusUnsupportedMediaType, Code: "JsonVerboseFormatNotSupported",
		Message: "JSON Verbose format is not supported.", Early: true,
	}
	ErrPropertyName   = &Problem{Status: http.StatusBadRequest, Code: "PropertyNameInvalid", Message: "The property name is invalid.", Early: true}
	ErrUnknownXMethod = Bad("XMethodIncorrectValue", "The specified X-HTTP-Method is invalid.")
	ErrManyXMethods   = Bad("XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
	ErrXMethodNotPost = Bad("XMethodNotUsingPost", "The request uses X-HTTP-Method with an HTTP verb other than POST.")
	ErrNotImplemented = &Problem{
		Status: http.StatusNotImplemented, Code: "NotImplemented",
		Message: "The requested operation is not implemented on the specified resource.",
	}
	ErrURI        = Bad("InvalidUri", "The requested URI does not represent any resource on the server.")
	ErrNeedValue  = Bad("PropertiesNeedValue", "The values are not specified for all properties in the entity.")
	ErrNoETag     = Bad(CodeInvalidInput, "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.")
	ErrURLSyntax  = &Problem{Status: http.StatusBadRequest, Code: CodeInvalidInput, Message: "Bad Request - Error in query syntax.", Early: true}
	ErrInvalidURL = &Problem{Status: http.StatusBadRequest, Page: true}
	ErrSecondary  = &Problem{
		Status: http.StatusForbidden, Code: "InsufficientAccountPermissions", Message: "Write operations are not allowed.",
	}
	ErrNoCors = &Problem{
		Status: http.StatusForbidden, Code: "CorsPreflightFailure",
		Message: "CORS not enabled or no matching rule found for this request.",
	}
	ErrCorsHeader = Bad("InvalidHeaderValue", "A required CORS header is not present.")
	ErrBusy       = &Problem{
		Status: http.StatusServiceUnavailable, Code: "ServerBusy",
		Message: "The server is currently unable to receive requests. Please retry your request.", Retry: "1",
	}
	// ErrQueryValue refuses the value of a parameter in the URL.
	ErrQueryValue = Bad("InvalidQueryParameterValue", badQueryValue)
	// ErrComp refuses a comp that the service or the resource does not have.
	ErrComp = &Problem{Status: http.StatusBadRequest, Code: "InvalidQueryParameterValue", Message: badQueryValue, Refusal: true, Front: true}
)

// Internal returns the problem of an internal error. cause is logged and not sent to the
// client.
func Internal(cause error) *Problem {
	return &Problem{
		Status: http.StatusInternalServerError, Code: "InternalError",
		Message: "Server encountered an internal error. Please try again after some time.", Cause: cause,
	}
}

// TimedOut returns the problem of an operation whose outcome is unknown. cause is logged
// and not sent to the client.
func TimedOut(cause error) *Problem {
	return &Problem{
		Status: http.StatusInternalServerError, Code: "OperationTimedOut",
		Message: "The operation could not be completed within the permitted time.", Cause: cause,
	}
}

// MethodNotAllowed refuses a method that the resource does not have; allowed are those that
// it has.
func MethodNotAllowed(allowed []string) *Problem {
	return &Problem{
		Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed",
		Message: "The requested method is not allowed on the specified resource.", Allow: strings.Join(allowed, ", "),
	}
}

// KeyCount refuses a path with too few keys for an entity.
func KeyCount(account, table string) *Problem {
	p := Bad(CodeInvalidInput,
		fmt.Sprintf("The number of keys specified in the URI does not match number of key properties for the resource '%s.%s'.", account, table))
	p.Early = true
	return p
}

// OutOfRange refuses the value of a property or of an option.
func OutOfRange(name, value string) *Problem {
	return Bad(codeOutOfRange, fmt.Sprintf("The '%s' parameter of value '%s' is out of range.", name, value))
}
