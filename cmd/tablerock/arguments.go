package main

import (
	"path/filepath"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/serve"
)

// azuriteProgram is the name of Azurite's server of tables.
const azuriteProgram = "azurite-table"

// argumentsOf returns the arguments of a command line, whose first element is the name of
// the program. A command line for Azurite gets the subcommand serve: one whose program is a
// link called azurite-table, or whose first argument is a flag of Azurite.
func argumentsOf(commandLine []string) []string {
	if len(commandLine) == 0 {
		return nil
	}
	args := commandLine[1:]
	switch isAzurite := programName(commandLine[0]) == azuriteProgram; {
	case isAzurite && len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"--version"}
	case isAzurite, len(args) > 0 && serve.IsAzuriteFlag(args[0]):
		return append([]string{"serve"}, args...)
	}
	return args
}

// programName returns the name of a program without its directory and extension.
func programName(path string) string {
	return strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe")
}
