package server

import "net/http"

// Routes returns the method and the name of each operation, some more than once.
func Routes() []string {
	all := []string{http.MethodOptions + " " + preflightOperation.name}
	for r, o := range routes {
		c := &command{method: r.method}
		all = append(all, r.method+" "+nameOf(o, c, nil), r.method+" "+nameOf(o, c, []string{"*"}))
	}
	return all
}
