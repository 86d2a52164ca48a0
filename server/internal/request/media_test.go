package request

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/odata"
)

func TestLevelOf(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   odata.Level
		err    error
	}{
		{nil, odata.Minimal, nil},
		{[]string{""}, odata.Minimal, nil},
		{[]string{"*/*"}, odata.Minimal, nil},
		{[]string{"application/json"}, odata.Minimal, nil},
		{[]string{"application/json;odata=nometadata"}, odata.None, nil},
		{[]string{"application/json; odata=fullmetadata"}, odata.Full, nil},
		{[]string{"application/json", "application/json; odata=fullmetadata"}, odata.Full, nil},
		{[]string{"text/html, application/json;odata=nometadata;q=0.5"}, odata.None, nil},
		{[]string{"Application/JSON;OData=NoMetadata"}, odata.None, nil},
		{[]string{"application/json;odata=verbose"}, odata.None, ErrVerbose},
		{[]string{"application/atom+xml"}, odata.None, ErrAtom},
		{[]string{"application/atom+xml,application/xml"}, odata.None, ErrAtom},
		{[]string{"application/atom+xml, */*"}, odata.Minimal, nil},
		{[]string{"text/plain"}, odata.None, ErrUnsupported},
		{[]string{"application/json;odata=some"}, odata.None, ErrUnsupported},
		{[]string{";;;"}, odata.None, ErrUnsupported},
		{[]string{strings.Repeat("a/bc,", (maxAcceptBytes-len("application/json"))/5) + "application/json"}, odata.Minimal, nil},
		{[]string{strings.Repeat("a/bc,", maxAcceptBytes/5+1) + "application/json"}, odata.None, ErrUnsupported},
	} {
		got, err := LevelOf("", c.accept)
		if err == nil && got != c.want || !errors.Is(err, c.err) {
			t.Errorf("LevelOf(%.100q) = %v, %v, want %v, %v", c.accept, got, err, c.want, c.err)
		}
	}
}

// TestLevelOfFormat sets a level in the URL, which takes precedence over the header.
func TestLevelOfFormat(t *testing.T) {
	if got, err := LevelOf("application/json;odata=fullmetadata", []string{"application/json;odata=nometadata"}); err != nil || got != odata.Full {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := LevelOf("application/atom+xml", []string{"application/json"}); !errors.Is(err, ErrAtom) {
		t.Error(err)
	}
}

// TestLevelOfFormatName sets a format by its name in the URL, which Accept cannot.
func TestLevelOfFormatName(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"json", nil},
		{"verbosejson", ErrVerbose},
		{"atom", ErrAtom},
		{"xml", ErrAtom},
		{"csv", ErrUnsupported},
	} {
		got, err := LevelOf(c.name, []string{"application/json;odata=fullmetadata"})
		if err == nil && got != odata.Minimal || !errors.Is(err, c.err) {
			t.Errorf("LevelOf(%q) = %v, %v, want minimal metadata or %v", c.name, got, err, c.err)
		}
		if _, err := LevelOf("", []string{c.name}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Accept: %s: %v, want %v", c.name, err, ErrUnsupported)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{"*/*"}, false},
		{[]string{"application/xml"}, false},
		{[]string{"application/xml", "text/html, application/json;odata=nometadata"}, true},
	} {
		if got := WantsJSON(c.accept); got != c.want {
			t.Errorf("WantsJSON(%q) = %v", c.accept, got)
		}
	}
}

func TestAcceptsAny(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   bool
	}{
		{nil, true},
		{[]string{""}, true},
		{[]string{"*/*"}, true},
		{[]string{" */*;q=0.5 ,"}, true},
		{[]string{"*/*", ""}, true},
		{[]string{"application/xml"}, false},
		{[]string{"*/*", "application/xml;q=0.1"}, false},
		{[]string{"application/*"}, false},
	} {
		if got := AcceptsAny(c.accept); got != c.want {
			t.Errorf("AcceptsAny(%q) = %v", c.accept, got)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	for _, c := range []struct {
		values []string
		err    error
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{"application/json"}, nil},
		{[]string{"application/json;odata=nometadata; charset=UTF-8"}, nil},
		{[]string{"application/json; charset=utf-16"}, ErrUnsupported},
		{[]string{"application/atom+xml"}, ErrAtom},
		{[]string{"text/plain"}, ErrUnsupported},
		{[]string{"application/json", "application/json"}, ErrUnsupported},
		{[]string{"/"}, ErrUnsupported},
	} {
		if err := CheckJSON(c.values); !errors.Is(err, c.err) {
			t.Errorf("CheckJSON(%q) = %v, want %v", c.values, err, c.err)
		}
	}
}

func TestPreferenceOf(t *testing.T) {
	for _, c := range []struct {
		method string
		values []string
		want   Preference
		text   string
	}{
		{"POST", nil, NoPreference, ""},
		{"POST", []string{"return-content"}, ReturnContent, "return-content"},
		{"POST", []string{" Return-No-Content "}, ReturnNoContent, "return-no-content"},
		{"POST", []string{"respond-async", "return-no-content", "return-content"}, ReturnNoContent, "return-no-content"},
		{"POST", []string{"return-nothing"}, NoPreference, ""},
		{"PUT", []string{"return-no-content"}, ReturnNoContent, "return-no-content"},
		{"PUT", []string{"return-content"}, NoPreference, ""},
		{"PATCH", []string{"return-no-content"}, ReturnNoContent, "return-no-content"},
		{"MERGE", []string{"return-no-content"}, ReturnNoContent, "return-no-content"},
		{"MERGE", []string{"return-content", "return-no-content"}, NoPreference, ""},
		{"DELETE", []string{"return-no-content"}, NoPreference, ""},
		{"GET", []string{"return-content"}, NoPreference, ""},
	} {
		if got := PreferenceOf(c.method, c.values); got != c.want || got.String() != c.text {
			t.Errorf("PreferenceOf(%s, %q) = %q, want %q", c.method, c.values, got, c.text)
		}
	}
}
