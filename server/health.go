package server

import "net/http"

// healthPath is the path of health checks. No client can use it otherwise, unless there
// is an account of that name.
const healthPath = "/healthz"

// healthOperation is the operation of health checks. It has no route, since it needs no
// account.
var healthOperation = &operation{name: "Health"}

// isHealth reports whether the request is a health check.
func (x *exchange) isHealth() bool {
	return x.r.URL.Path == healthPath && x.account == nil && !x.HostStyle && (x.r.Method == http.MethodGet || x.r.Method == http.MethodHead)
}

// health responds to a health check, without authorization.
func (x *exchange) health() error {
	x.operation, x.Address.Account = healthOperation, "" // the path names no account
	x.set("Cache-Control", "no-store")
	return x.sendEmpty(http.StatusOK)
}
