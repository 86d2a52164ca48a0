package main

import (
	"slices"
	"strings"
	"testing"
)

func TestArgumentsOf(t *testing.T) {
	for line, want := range map[string]string{
		"tablerock":                             "",
		"/usr/bin/tablerock table list":         "table list",
		"tablerock --data d table list":         "--data d table list",
		"tablerock -q -o csv table list":        "-q -o csv table list",
		"tablerock --version":                   "--version",
		"tablerock --account a table list":      "--account a table list",
		"tablerock --listen :1":                 "--listen :1",
		"tablerock --tablePort 1":               "serve --tablePort 1",
		"tablerock --tablePort=1 --data d":      "serve --tablePort=1 --data d",
		"tablerock -l . -s":                     "serve -l . -s",
		"tablerock -d/tmp/log":                  "serve -d/tmp/log",
		"tablerock -L":                          "serve -L",
		"tablerock --loose":                     "serve --loose",
		"tablerock --cert c --key k":            "serve --cert c --key k",
		"tablerock --oauth basic":               "serve --oauth basic",
		"tablerock --skipApiVersionCheck":       "serve --skipApiVersionCheck",
		"tablerock - -- --x -":                  "- -- --x -",
		"tablerock table list --tablePort 1":    "table list --tablePort 1",
		"azurite-table":                         "serve",
		"./bin/azurite-table --silent -l /data": "serve --silent -l /data",
		"azurite-table --listen :1":             "serve --listen :1",
		"azurite-table -v":                      "--version",
		"azurite-table.exe --help":              "serve --help",
		"/x/azurite-table.d/tablerock stats":    "stats",
	} {
		if got := argumentsOf(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := argumentsOf(nil); got != nil {
		t.Errorf("without a name: got %q", got)
	}
}
