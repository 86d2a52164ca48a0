package pgbackend

import "github.com/spf13/pflag"

// Flag is the flag with the URL of a database.
const Flag = "backend"

// AsyncFlag is the flag that accepts a database whose commits do not wait for a standby.
const AsyncFlag = "allow-async"

// Flags are the flags of a database.
type Flags struct {
	URL        string
	AllowAsync bool
}

// Add adds the flags to set.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.Var((*secret)(&f.URL), Flag, "keep the data in the database of PostgreSQL at this `URL` instead of --data, as postgres://USER@HOST/DATABASE; "+
		"keep its password in PGPASSFILE or a service file")
	set.BoolVar(&f.AllowAsync, AsyncFlag, false, "accept a database whose commits do not wait for a standby")
}

// secret is a flag with a text that no message repeats.
type secret string

// Set sets the text.
func (s *secret) Set(text string) error {
	*s = secret(text)
	return nil
}

// Type returns the name of the value in the help.
func (*secret) Type() string { return "URL" }

// String returns "".
func (*secret) String() string { return "" }

// WarnPassword says how to hide the password of a URL of the command line, if it has one.
func (u *URL) WarnPassword(note func(format string, args ...any)) {
	if u.password {
		note("other users of this machine can read the password in the command line: prefer PGPASSFILE, a service file, or TABLEROCK_BACKEND")
	}
}
