package documents

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

// corsRule reads a rule. All its elements are required.
func (r *reader) corsRule() (cors.Rule, error) {
	var rule cors.Rule
	err := r.fields(
		wordsField("AllowedMethods", &rule.AllowedMethods), wordsField("AllowedOrigins", &rule.AllowedOrigins),
		wordsField("AllowedHeaders", &rule.AllowedHeaders), wordsField("ExposedHeaders", &rule.ExposedHeaders),
		numberField("MaxAgeInSeconds", &rule.MaxAge),
	)
	return rule, err
}

// returned returns the headers in the order of the service's documents: whole names before
// prefixes with a star.
func returned(headers []string) []string {
	return slices.SortedStableFunc(slices.Values(headers), func(a, b string) int { return strings.Count(a, "*") - strings.Count(b, "*") })
}

// wordsField is an element with a list of words, separated by commas.
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

func appendRule(dst []byte, rule cors.Rule) []byte {
	dst = appendText(appendStart(dst, "CorsRule"), "AllowedMethods", strings.Join(rule.AllowedMethods, ","))
	dst = appendText(dst, "AllowedOrigins", strings.Join(rule.AllowedOrigins, ","))
	dst = appendText(dst, "AllowedHeaders", strings.Join(returned(rule.AllowedHeaders), ","))
	dst = appendText(dst, "ExposedHeaders", strings.Join(returned(rule.ExposedHeaders), ","))
	dst = appendText(dst, "MaxAgeInSeconds", strconv.Itoa(rule.MaxAge))
	return appendEnd(dst, "CorsRule")
}
