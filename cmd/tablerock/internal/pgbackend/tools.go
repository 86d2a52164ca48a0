package pgbackend

import (
	"fmt"
	"strings"
)

// tool is a command that works on files.
type tool struct {
	command string
	data    bool   // it works on --data, and not on what its arguments name alone
	instead string // what does its work for a database of PostgreSQL
}

const archives = "pg_basebackup and the archive of its log (pgBackRest and Barman manage both), and pg_dump for one database"

var tools = []tool{
	{"verify", true, "pg_amcheck for a server that runs and pg_checksums for one that does not"},
	{"compact", true, `autovacuum, VACUUM and pg_repack; "tablerock backend sweep" removes the entities of dropped tables`},
	{"checkpoint", true, "pg_basebackup for the server and pg_dump for one database"},
	{"explain", true, `EXPLAIN and auto_explain; "tablerock backend check" looks at the plan of a page of entities`},
	{"backup create", true, archives},
	{"backup", false, archives},
	{"restore", false, "a base backup with the archive of its log (pgBackRest and Barman manage both), and pg_restore for what pg_dump wrote"},
	{"inspect", false, "pg_waldump for its log and the extension pageinspect for its tables"},
	{"bench", false, "pgbench"},
}

// Instead returns the message of a command that works on files alone, and "" for another one.
// path is the command with its group. named is whether the command line has the URL of a
// database; if not, the environment has it, which is not for commands whose arguments name
// their files.
func Instead(path string, named bool) string {
	for _, t := range tools {
		if (path == t.command || strings.HasPrefix(path, t.command+" ")) && (named || t.data) {
			return fmt.Sprintf("%s works on files, and not on a database of PostgreSQL; there, use %s", t.command, t.instead)
		}
	}
	return ""
}
