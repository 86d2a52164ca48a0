package documents

import (
	"errors"
	"strings"
	"testing"
)

// prologue is in front of the root of documents of the service.
const prologue = "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>"

func refused(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal)
}

// TestDocuments checks what is common to all kinds of documents.
func TestDocuments(t *testing.T) {
	const list = "<SignedIdentifiers />"
	deep := strings.Repeat("<SignedIdentifiers>", 3000)
	for _, c := range []struct {
		name, doc string
		ok        bool
	}{
		{"bare", list, true},
		{"declaration", `<?xml version="1.0"?>` + list, true},
		{"declaration with the name of the encoding in capitals", `<?xml version='1.0' encoding='UTF-8'?>` + "\n" + list, true},
		{"byte order mark", prologue + list, true},
		{"space and comments around", "<!-- a --> \n" + list + "\r\n<!-- b -->\t", true},
		{"comments within", "<SignedIdentifiers> <!-- <a/> --> </SignedIdentifiers>", true},
		{"attributes", `<SignedIdentifiers xmlns:i="http://www.w3.org/2001/XMLSchema-instance" a="1" />`, true},
		{"CDATA of space", "<SignedIdentifiers><![CDATA[ ]]></SignedIdentifiers>", true},

		{"text", "abc", false},
		{"JSON", `{"SignedIdentifiers":[]}`, false},
		{"space alone", " \n", false},
		{"declaration alone", prologue, false},
		{"another root", "<signedIdentifiers />", false},
		{"root with a prefix", `<a:SignedIdentifiers xmlns:a="b" />`, false},
		{"root of a namespace", `<SignedIdentifiers xmlns="http://schemas.microsoft.com/" />`, false},
		{"open", "<SignedIdentifiers>", false},
		{"closed by another", "<SignedIdentifiers></SignedIdentifier>", false},
		{"two roots", list + list, false},
		{"text before", "a" + list, false},
		{"text after", list + "a", false},
		{"text within", "<SignedIdentifiers>a</SignedIdentifiers>", false},
		{"a space that XML does not have", list + "\u00a0", false},
		{"NUL", list + "\x00", false},
		{"no UTF-8", "<SignedIdentifiers>\xff</SignedIdentifiers>", false},
		{"UTF-16", "\xff\xfe<\x00a\x00/\x00>\x00", false},
		{"another encoding", `<?xml version="1.0" encoding="utf-16"?>` + list, false},
		{"another version", `<?xml version="1.1"?>` + list, false},
		{"second declaration", `<?xml version="1.0"?><?xml version="1.0"?>` + list, false},
		{"late declaration", ` <?xml version="1.0"?>` + list, false},
		{"instruction before", `<?php 1 ?>` + list, false},
		{"instruction within", `<SignedIdentifiers><?a b?></SignedIdentifiers>`, false},
		{"instruction after", list + `<?a b?>`, false},
		{"document type", "<!DOCTYPE SignedIdentifiers>" + list, false},
		{"document type within", "<SignedIdentifiers><!DOCTYPE a></SignedIdentifiers>", false},
		{
			"entities of entities",
			`<!DOCTYPE a [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><SignedIdentifiers><SignedIdentifier><Id>&b;</Id></SignedIdentifier>` +
				`</SignedIdentifiers>`,
			false,
		},
		{"outside entity", `<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>` + list, false},
		{"unknown entity", "<SignedIdentifiers><SignedIdentifier><Id>&nbsp;</Id></SignedIdentifier></SignedIdentifiers>", false},
		{"deep", deep + strings.Repeat("</SignedIdentifiers>", 3000), false},
		{"deep and open", deep, false},
		{"longest", list + strings.Repeat(" ", maxDocumentBytes-len(list)), true},
		{"too long", list + strings.Repeat(" ", maxDocumentBytes-len(list)+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParsePolicies([]byte(c.doc))
			if c.ok && (err != nil || got != nil) {
				t.Errorf("%.200q: got %v, %v; want no policies, no error", c.doc, got, err)
			}
			if !c.ok && !refused(err) {
				t.Errorf("%.200q: got %v, %v; want an *Error", c.doc, got, err)
			}
		})
	}
}
