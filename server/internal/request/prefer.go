package request

import (
	"net/http"
	"strings"
)

// Preference is the value of Prefer.
type Preference uint8

// The preferences.
const (
	NoPreference Preference = iota
	ReturnContent
	ReturnNoContent
)

// String returns the value of Preference-Applied.
func (p Preference) String() string {
	switch p {
	case ReturnContent:
		return "return-content"
	case ReturnNoContent:
		return "return-no-content"
	case NoPreference:
	}
	return ""
}

// PreferenceOf returns the preference that a request of the method honors, by the values
// of Prefer: for an insert the first known one, for a replace or merge ReturnNoContent
// if that is the first known one.
func PreferenceOf(method string, values []string) Preference {
	p := firstPreference(values)
	switch method {
	case http.MethodPost:
		return p
	case http.MethodPut, http.MethodPatch, "MERGE":
		if p == ReturnNoContent {
			return p
		}
	}
	return NoPreference
}

func firstPreference(values []string) Preference {
	for _, v := range values {
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "return-content":
			return ReturnContent
		case "return-no-content":
			return ReturnNoContent
		}
	}
	return NoPreference
}
