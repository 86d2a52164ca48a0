package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/atomicfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/internal/explorer"
)

// endpoint is the address of the service.
type endpoint struct {
	scheme string
	host   string // host:port
	admin  string // URL of the admin listener, "" for none
	pages  bool   // the admin listener has the pages of /ui/
}

func (e *endpoint) url(account string) string { return e.scheme + "://" + e.host + "/" + account }

func (e *endpoint) connectionString(account, key string) string {
	return fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;TableEndpoint=%s;", e.scheme, account, key, e.url(account))
}

// ready is the content of a ready file.
type ready struct {
	URL              string `json:"url"`
	Admin            string `json:"admin,omitempty"`
	PID              int    `json:"pid"`
	ConnectionString string `json:"connection_string"`
}

// writeReady writes the ready file. Only its owner can read it, because it contains a key.
// A reader never sees it incomplete.
func writeReady(name string, e *endpoint, first account) error {
	r := ready{URL: e.url(first.name), PID: os.Getpid(), ConnectionString: e.connectionString(first.name, first.keys[0])}
	if e.admin != "" {
		r.Admin = e.admin
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".ready-*")
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return hint.With(ofReady(name, err), "give a file in an existing directory")
	}
	if err != nil {
		return ofReady(name, err)
	}
	_, err = f.Write(append(text, '\n'))
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err says more
		return ofReady(name, err)
	}
	return nil
}

// ofReady returns err as an error of the ready file called name in place of its temporary file.
func ofReady(name string, err error) error {
	return fmt.Errorf("--ready-file: %w", atomicfile.ErrorOf(name, err))
}

// checkReady checks that the directory of the ready file exists, or is that of the data, which
// the databases make.
func (c *Config) checkReady() error {
	name := c.ReadyFile
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // removeReady would remove a device
		return usagef("--ready-file %s: it is a directory, a device or a pipe; give a file", name)
	}
	if name == "" || !c.InMemory && filepath.Dir(name) == filepath.Clean(c.Data) {
		return nil
	}
	info, err := os.Stat(filepath.Dir(name))
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	} else if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	return hint.With(fmt.Errorf("--ready-file: write %s: %w", name, err), "give a file in an existing directory")
}

// removeReady removes a ready file, so that nobody reads that of an earlier run.
func removeReady(name string) error {
	if name == "" {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}

// banner prints the addresses of the service. It prints no key but the public one, because
// the output of a server often goes to logs.
func (c *Config) banner(e *endpoint, dbs databases) {
	if c.Quiet {
		return
	}
	for i, a := range dbs {
		line := "Tablerock serves"
		if i > 0 {
			line = "            and"
		}
		fmt.Fprintf(c.Stdout, "%s  %s\n", line, e.url(a.name))
	}
	if e.admin != "" {
		fmt.Fprintf(c.Stdout, "admin             %s\n", e.admin)
	}
	if e.pages {
		fmt.Fprintf(c.Stdout, "explorer          %s%s\n", e.admin, explorer.Root)
	}
	c.bannerData(dbs)
	if c.rules != nil {
		fmt.Fprintf(c.Stdout, "faults            %d rules of %s, seed %d: requests fail on purpose\n", len(c.rules), c.FaultsFile, c.Seed)
	}
	first, key := dbs[0], "..."
	if first.keys[0] == developmentKey {
		key = developmentKey
	}
	fmt.Fprintf(c.Stdout, "connection        %s\n", e.connectionString(first.name, key))
	if e.scheme == "http" && e.host == defaultListen && first.name == developmentAccount {
		fmt.Fprintln(c.Stdout, "               or UseDevelopmentStorage=true")
	}
}
