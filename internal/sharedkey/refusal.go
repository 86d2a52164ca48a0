package sharedkey

import (
	"errors"
	"net/http"
)

// Refusal is the error response to a request that is not authorized. Refusals are
// shared between requests; do not change them.
type Refusal struct {
	Status    int
	Code      string // value of x-ms-error-code
	Message   string
	Challenge string // the WWW-Authenticate header, "" for none
	Front     bool   // the service's front end sends the response, without a protocol version
	Bare      bool   // the response has no x-ms-request-id
	Full      bool   // with Front: the response has all headers of the Table service
	Anonymous bool   // the request has no credentials
	Reason    error  // for the log of the server, never for the client; nil for none
}

// Error returns the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

const authenticationMessage = "Server failed to authenticate the request. " +
	"Make sure the value of Authorization header is formed correctly including the signature."

func forbidden(code, message string) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Code: code, Message: message}
}

// refusedFor returns refusedAuthentication with a reason.
func refusedFor(reason string) *Refusal {
	r := *refusedAuthentication
	r.Reason = errors.New(reason)
	return &r
}

func mismatch(code, with string) *Refusal {
	return forbidden(code, "This request is not authorized to perform this operation using this "+with+".")
}

// Every request that may be forged gets the same response, that of refusedAuthentication,
// whatever the reason. refusedClock and refusedTimes name it for the log, because the other
// end then has a wrong clock and no wrong key. A newer client that sends an invalid token gets refusedToken.
var (
	refusedAuthentication = &Refusal{Status: http.StatusForbidden, Code: "AuthenticationFailed", Message: authenticationMessage, Front: true}
	refusedClock          = refusedFor("the request has no date within 15 minutes of the clock of this server")
	refusedTimes          = refusedFor("the clock of this server is not within the times of the shared access signature")
	refusedOperation      = forbidden("AuthorizationFailure", "This request is not authorized to perform this operation.")
	refusedPermission     = mismatch("AuthorizationPermissionMismatch", "permission")
	refusedResourceType   = mismatch("AuthorizationResourceTypeMismatch", "resource type")
	refusedService        = mismatch("AuthorizationServiceMismatch", "service")
	refusedProtocol       = mismatch("AuthorizationProtocolMismatch", "protocol")
	refusedAnonymous      = &Refusal{
		Status: http.StatusForbidden, Code: "AuthenticationFailed", Message: authenticationMessage, Front: true, Bare: true, Anonymous: true,
	}
	refusedScheme = &Refusal{
		Status: http.StatusBadRequest, Code: codeAuthenticationInfo,
		Message: "Authentication information is not given in the correct format. Check the value of Authorization header.",
		Front:   true,
	}
	refusedDate = &Refusal{
		Status: http.StatusBadRequest, Code: "InvalidHeaderValue",
		Message: "The value for one of the HTTP headers is not in the correct format.",
		Front:   true,
	}
	refusedBearerACL = &Refusal{Status: http.StatusNotFound, Code: "ResourceNotFound", Message: "The specified resource does not exist."}
	challenge        = &Refusal{
		Status: http.StatusUnauthorized, Code: "NoAuthenticationInformation", Message: challengeMessage, Challenge: challengeHeader,
		Front: true, Full: true, Anonymous: true,
	}
	serviceChallenge = &Refusal{
		Status: http.StatusUnauthorized, Code: codeAuthenticationInfo, Message: challengeMessage, Challenge: challengeHeader,
		Front: true, Bare: true, Anonymous: true,
	}
	refusedToken = &Refusal{
		Status: http.StatusUnauthorized, Code: codeAuthenticationInfo, Message: challengeMessage, Challenge: challengeHeader,
		Front: true, Full: true,
	}
)

const (
	codeAuthenticationInfo = "InvalidAuthenticationInfo"
	challengeMessage       = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
	challengeHeader        = "Bearer authorization_uri=https://login.microsoftonline.com/" + tenant + "/oauth2/authorize resource_id=https://storage.azure.com"
)

// tenant is the directory in challenges, where clients request a token. A token of any
// directory is accepted.
const tenant = "00000000-0000-0000-0000-000000000000"
