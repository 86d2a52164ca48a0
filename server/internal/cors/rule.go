package cors

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Rule allows methods and headers to pages of some origins. A header that ends in a star is
// a prefix. The origin * means all origins, and http://*.example.com all subdomains.
type Rule struct {
	AllowedMethods []string
	AllowedOrigins []string
	AllowedHeaders []string
	ExposedHeaders []string
	MaxAge         int // seconds for which a browser may cache the response to a preflight
}

// The limits of the rules of an account.
const (
	MaxRules           = 5
	maxBytes           = 2 << 10 // of all texts of all rules
	maxTextBytes       = 256     // of one origin or header
	maxLiteralHeaders  = 64
	maxPrefixedHeaders = 2
)

var methods = []string{
	http.MethodDelete, http.MethodGet, http.MethodHead, "MERGE", http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch,
	http.MethodTrace, http.MethodConnect, // of clients that allow all methods
}

// Check checks the rules of an account against the limits.
func Check(rules []Rule) error {
	if len(rules) > MaxRules {
		return fmt.Errorf("more than %d CORS rules", MaxRules)
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
	if total > maxBytes {
		return fmt.Errorf("CORS rules of more than %d bytes", maxBytes)
	}
	return nil
}

func (r *Rule) check() error {
	if len(r.AllowedMethods) == 0 || len(r.AllowedOrigins) == 0 {
		return errors.New("a CORS rule without method or origin")
	}
	if r.MaxAge < 0 || r.MaxAge > 1<<31-1 {
		return errors.New("MaxAgeInSeconds is out of range")
	}
	for _, method := range r.AllowedMethods {
		if !slices.Contains(methods, method) {
			return fmt.Errorf("unknown method %q in a CORS rule", method)
		}
	}
	for _, origin := range r.AllowedOrigins {
		if len(origin) > maxTextBytes || !visible(origin) {
			return errors.New("an origin in a CORS rule is too long or not visible ASCII")
		}
	}
	for _, headers := range [...][]string{r.AllowedHeaders, r.ExposedHeaders} {
		prefixed := 0
		for _, header := range headers {
			name, star := strings.CutSuffix(header, "*")
			if star {
				prefixed++
			}
			if len(header) > maxTextBytes || name == "" && !star || name != "" && !isToken(name) {
				return fmt.Errorf("the header %q in a CORS rule is too long or not a header", header)
			}
		}
		if prefixed > maxPrefixedHeaders || len(headers)-prefixed > maxLiteralHeaders {
			return errors.New("too many headers in a CORS rule")
		}
	}
	return nil
}

// visible reports whether s can be an item of a list in a header.
func visible(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == ',' })
}

// isToken reports whether s is the name of a header, and has no star.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'+-.^_`|~", c)
	})
}
