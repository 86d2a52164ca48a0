package request

import "strings"

// Preference is what a Prefer header asks of an insert.
type Preference uint8

// The preferences.
const (
	NoPreference Preference = iota
	ReturnContent
	ReturnNoContent
)

// String returns the preference as Preference-Applied states it.
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

// PreferenceOf reads Prefer: the first preference that is known wins.
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
