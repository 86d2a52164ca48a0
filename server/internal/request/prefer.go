package request

import "strings"

// Preference is the value of Prefer, for inserts.
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

// PreferenceOf returns the first known preference in the values of Prefer.
func PreferenceOf(values []string) Preference {
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
