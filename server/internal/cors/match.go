package cors

import (
	"net/http"
	"slices"
	"strings"
)

// match returns the first rule that allows a request of this method from this origin, nil
// if there is none. For a preflight the rule must also allow all headers in the lists of
// Access-Control-Request-Headers.
func match(rules []Rule, origin, method string, headers []string) *Rule {
	for i := range rules {
		if rules[i].allows(origin, method) && rules[i].allowsHeaders(headers) {
			return &rules[i]
		}
	}
	return nil
}

func (r *Rule) allows(origin, method string) bool {
	return r.origin(origin) != "" && slices.Contains(r.AllowedMethods, method)
}

func (r *Rule) allowsHeaders(lists []string) bool {
	for _, list := range lists {
		for header := range strings.SplitSeq(list, ",") {
			header = strings.Trim(header, " \t")
			if header != "" && (!isToken(header) || !matchesHeader(r.AllowedHeaders, header)) {
				return false
			}
		}
	}
	return true
}

// origin returns the value of Access-Control-Allow-Origin for a page of origin: a star if
// the rule allows all origins, origin if the rule names it, "" if it does not allow it. A
// request without an origin has the origin "".
func (r *Rule) origin(origin string) string {
	switch {
	case slices.Contains(r.AllowedOrigins, "*"):
		return "*"
	case slices.ContainsFunc(r.AllowedOrigins, func(allowed string) bool { return matchesOrigin(allowed, origin) }):
		return origin
	}
	return ""
}

// subdomains is before the domain of an origin that allows all subdomains of it, such as
// http://*.example.com. It does not allow the domain itself.
const subdomains = "://*."

// matchesOrigin reports whether origin is the allowed one, or of a subdomain of it.
func matchesOrigin(allowed, origin string) bool {
	if allowed == origin {
		return true
	}
	scheme, domain, ok := strings.Cut(allowed, subdomains)
	if !ok {
		return false
	}
	host, of := strings.CutPrefix(origin, scheme+"://")
	label, below := strings.CutSuffix(host, "."+domain)
	return of && below && label != "" && !strings.ContainsAny(label, "/:@?#")
}

// matchesHeader reports whether a header is in a rule's list, in any case.
func matchesHeader(list []string, header string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		if prefix, ok := strings.CutSuffix(s, "*"); ok {
			return len(header) >= len(prefix) && strings.EqualFold(header[:len(prefix)], prefix)
		}
		return strings.EqualFold(s, header)
	})
}

// exposable are the headers of responses, in the order in which the service lists them. Those
// of refusals alone are not recorded.
var exposable = [...]string{
	"x-ms-request-id", "x-ms-client-request-id", "Server", "x-ms-version", "x-ms-error-code",
	"X-Content-Type-Options", "Cache-Control", "Preference-Applied", "Location", "DataServiceId", "ETag", "Content-Type",
	"x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey", "x-ms-continuation-NextTableName",
	"Retry-After", "Allow", "WWW-Authenticate",
}

// transport are the headers that HTTP adds to every response.
var transport = [...]string{"Content-Length", "Date", "Transfer-Encoding"}

// exposed returns the value of Access-Control-Expose-Headers for a response with header h:
// the headers that the rule names, and those of the response that match its patterns.
func (r *Rule) exposed(h http.Header) string {
	var names, patterns []string
	for _, s := range r.ExposedHeaders {
		if strings.HasSuffix(s, "*") {
			patterns = append(patterns, s)
		} else {
			names = append(names, s)
		}
	}
	add := func(name string) {
		if matchesHeader(patterns, name) && !matchesHeader(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range exposable {
		if _, ok := h[http.CanonicalHeaderKey(name)]; ok {
			add(name)
		}
	}
	for _, name := range transport {
		add(name)
	}
	return strings.Join(names, ",")
}
