package server

import "net/http"

// Routes returns the method and the name of each operation.
func Routes() []string {
	all := []string{http.MethodOptions + " " + preflightOperation.name}
	for r, o := range routes {
		all = append(all, r.method+" "+o.name)
	}
	return all
}
