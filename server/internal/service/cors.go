package service

import (
	"net/http"
	"slices"
	"strings"
)

// CorsRule says what pages of which origins may do. A header may end in a star,
// which stands for any end; an origin that is a star stands for all of them.
type CorsRule struct {
	AllowedMethods []string
	AllowedOrigins []string
	AllowedHeaders []string
	ExposedHeaders []string
	MaxAge         int // seconds that a browser may keep the answer of a preflight
}

// The limits of the rules of an account.
const (
	maxCorsBytes       = 2 << 10 // of all texts of all rules
	maxCorsTextBytes   = 256     // of one origin or header
	maxLiteralHeaders  = 64
	maxPrefixedHeaders = 2
)

var corsMethods = []string{
	http.MethodDelete, http.MethodGet, http.MethodHead, "MERGE", http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch,
}

// corsRule reads a rule, of which every part has to be there.
func (r *reader) corsRule() (CorsRule, error) {
	var rule CorsRule
	err := r.fields(
		wordsField("AllowedMethods", &rule.AllowedMethods), wordsField("AllowedOrigins", &rule.AllowedOrigins),
		wordsField("AllowedHeaders", &rule.AllowedHeaders), wordsField("ExposedHeaders", &rule.ExposedHeaders),
		numberField("MaxAgeInSeconds", &rule.MaxAge),
	)
	sortHeaders(rule.AllowedHeaders)
	sortHeaders(rule.ExposedHeaders)
	return rule, err
}

// sortHeaders brings headers into the order in which the service returns them: whole
// names before those that end in a star.
func sortHeaders(headers []string) {
	slices.SortStableFunc(headers, func(a, b string) int { return strings.Count(a, "*") - strings.Count(b, "*") })
}

// wordsField is an element of words with commas between them.
func wordsField(name string, to *[]string) field {
	return textField(name, func(s string) error {
		*to = splitWords(s)
		return nil
	})
}

func splitWords(s string) []string {
	var words []string
	for word := range strings.SplitSeq(s, ",") {
		if word = trimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// checkCors holds the rules of an account against their limits.
func checkCors(rules []CorsRule) error {
	if len(rules) > MaxCorsRules {
		return refuse("more than %d CORS rules", MaxCorsRules)
	}
	total := 0
	for _, rule := range rules {
		if err := rule.check(); err != nil {
			return err
		}
		for _, words := range [...][]string{rule.AllowedMethods, rule.AllowedOrigins, rule.AllowedHeaders, rule.ExposedHeaders} {
			for _, word := range words {
				total += len(word)
			}
		}
	}
	if total > maxCorsBytes {
		return refuse("CORS rules of more than %d bytes", maxCorsBytes)
	}
	return nil
}

func (c *CorsRule) check() error {
	if len(c.AllowedMethods) == 0 || len(c.AllowedOrigins) == 0 {
		return refuse("a CORS rule without a method, or without an origin")
	}
	if c.MaxAge < 0 || c.MaxAge > 1<<31-1 {
		return refuse("a MaxAgeInSeconds out of range")
	}
	for _, method := range c.AllowedMethods {
		if !slices.Contains(corsMethods, method) {
			return refuse("the unknown method %q in a CORS rule", method)
		}
	}
	for _, origin := range c.AllowedOrigins {
		if len(origin) > maxCorsTextBytes || !visible(origin) {
			return refuse("an origin that is too long, or not visible ASCII")
		}
	}
	for _, headers := range [...][]string{c.AllowedHeaders, c.ExposedHeaders} {
		prefixed := 0
		for _, header := range headers {
			name, star := strings.CutSuffix(header, "*")
			if star {
				prefixed++
			}
			if len(header) > maxCorsTextBytes || name == "" && !star || name != "" && !isToken(name) {
				return refuse("the header %q in a CORS rule is too long, or none", header)
			}
		}
		if prefixed > maxPrefixedHeaders || len(headers)-prefixed > maxLiteralHeaders {
			return refuse("too many headers in a CORS rule")
		}
	}
	return nil
}

// visible reports whether s can be one word of a header's list.
func visible(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == ',' })
}

// isToken reports whether s can be a header's name, without a star in it.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'+-.^_`|~", c)
	})
}

// MatchCors returns the first rule for a request of this method from this
// origin, nil if there is none.
func MatchCors(rules []CorsRule, origin, method string) *CorsRule {
	for i := range rules {
		if rules[i].allows(origin, method) {
			return &rules[i]
		}
	}
	return nil
}

// MatchPreflight is MatchCors for a browser's question before the request: the
// rule has to allow too all headers in the lists that Access-Control-Request-Headers
// gave.
func MatchPreflight(rules []CorsRule, origin, method string, headers []string) *CorsRule {
	for i := range rules {
		if rules[i].allows(origin, method) && rules[i].allowsHeaders(headers) {
			return &rules[i]
		}
	}
	return nil
}

func (c *CorsRule) allows(origin, method string) bool {
	return c.Origin(origin) != "" && slices.Contains(c.AllowedMethods, method)
}

func (c *CorsRule) allowsHeaders(lists []string) bool {
	for _, list := range lists {
		for header := range strings.SplitSeq(list, ",") {
			header = strings.Trim(header, " \t")
			if header != "" && (!isToken(header) || !matchesHeader(c.AllowedHeaders, header)) {
				return false
			}
		}
	}
	return true
}

// Origin returns what Access-Control-Allow-Origin says to a page of origin: that
// origin if the rule names it, a star if it allows all, "" if it does not allow it.
func (c *CorsRule) Origin(origin string) string {
	switch {
	case slices.Contains(c.AllowedOrigins, origin):
		return origin
	case slices.Contains(c.AllowedOrigins, "*"):
		return "*"
	}
	return ""
}

// matchesHeader reports whether a header is in a rule's list; case does not count.
func matchesHeader(list []string, header string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		if prefix, ok := strings.CutSuffix(s, "*"); ok {
			return len(header) >= len(prefix) && strings.EqualFold(header[:len(prefix)], prefix)
		}
		return strings.EqualFold(s, header)
	})
}

// exposable are the headers that answers have, in the order in which the service
// names them.
var exposable = [...]string{
	"x-ms-request-id", "x-ms-client-request-id", "Server", "x-ms-version", "x-ms-error-code",
	"X-Content-Type-Options", "Cache-Control", "Preference-Applied", "Location", "DataServiceId", "ETag", "Content-Type",
	"x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey", "x-ms-continuation-NextTableName",
}

// transport are the headers that every answer has, or that are added on its way.
var transport = [...]string{"Content-Length", "Date", "Transfer-Encoding"}

// Exposed returns what Access-Control-Expose-Headers says with an answer of
// header h: the headers that the rule names, and those of the answer that its
// patterns mean.
func (c *CorsRule) Exposed(h http.Header) string {
	var names, patterns []string
	for _, s := range c.ExposedHeaders {
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
