package main

import (
	"os"
	"path/filepath"
	"regexp"
)

// repository is where the files of a commit are, which an archive does not contain.
const repository = "https://github.com/tablerock-db/tablerock/blob/"

// link matches the start of a relative link in Markdown, with its target.
var link = regexp.MustCompile(`\]\(([A-Za-z0-9_./-]+(?:#[A-Za-z0-9_-]*)?)\)`)

// absolute returns a text whose links to files of the project lead to the repository at a
// commit.
func absolute(text []byte, commit string) []byte {
	return link.ReplaceAll(text, []byte("]("+repository+commit+"/$1)"))
}

// writeTexts writes the texts of an archive that link to other files to a directory.
func (r *release) writeTexts(dir string) error {
	for _, name := range linked {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), absolute(text, r.commit), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// linked are the texts of an archive that link to other files of the project.
var linked = []string{"README.md", "CHANGELOG.md"}
