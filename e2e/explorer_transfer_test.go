package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Every format is exported and imported again.
func TestExplorerFormats(t *testing.T) {
	s, p := explorer(t, map[string]string{"Source": everyType + orders(50), "Copy": orders(1)})
	files := p.downloads()
	dir := t.TempDir()
	at := func(table string) string { return "/ui/transfer?account=" + s.account + "&table=" + table }
	for _, format := range []string{"csv", "jsonl", "json", "parquet", "csv.gz", "jsonl.zst"} {
		p.open(at("Source"))
		format, compression, _ := strings.Cut(format, ".")
		p.choose(`form.export select[name="format"]`, format)
		if compression != "" {
			p.choose(`form.export select[name="compression"]`, compression)
		}
		name := eval[string](p, one(`form.export input[name="name"]`)+`.value`)
		p.press("Export")
		text := files(name)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		clearTable(t, s, "Copy")
		p.open(at("Copy"))
		do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
		p.press("Import")
		p.wait(`document.querySelector("#import-job").innerText.includes("51 entities") && document.querySelector("#import-job").innerText.includes("done")`)
		got := readEntity(t, s, "Copy", "types", "all")
		if got["L@odata.type"] != "Edm.Int64" || got["T"] != "2026-07-01T12:00:00.1234567Z" || got["X"] != "iVBORw==" || got["D"] != 0.5 || got["B"] != true {
			t.Errorf("%s: %v", name, got)
		}
	}
	p.wait(`document.querySelectorAll("#jobs progress").length > 0`)
}

// An export appears among the jobs without loading the page again, also when one has ended.
func TestExplorerExportListed(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(5)})
	files := p.downloads()
	p.open("/ui/transfer?account=" + s.account + "&table=Orders")
	p.wait(`document.querySelector("#jobs").innerText.includes("None yet")`)
	for i, name := range []string{"first.csv", "second.csv"} {
		p.enter(`form.export input[name="name"]`, name)
		p.press("Export")
		files(name)
		p.wait(fmt.Sprintf(`(() => {
			const jobs = [...document.querySelectorAll("#jobs .panel")].map((job) => job.innerText);
			return jobs.length === %d && jobs.every((job) => job.includes("done")) && jobs[0].includes(%q); })()`, i+1, name))
	}
}

func clearTable(t *testing.T, s *server, table string) {
	t.Helper()
	c := s.service(t).NewClient(table)
	for pager := c.NewListEntitiesPager(nil); pager.More(); {
		for _, e := range must(pager.NextPage(t.Context()))(t).Entities {
			key := members(t, e)
			must(c.DeleteEntity(t.Context(), key["PartitionKey"].(string), key["RowKey"].(string), nil))(t)
		}
	}
}

// An import shows its progress, continues after the connection failed, and shows the rows that
// it skipped.
func TestExplorerImportResumes(t *testing.T) {
	s, p := explorer(t, map[string]string{"Big": orders(1)})
	var b strings.Builder
	b.WriteString("PartitionKey,RowKey,N@Edm.Int32,Text\n")
	const rows = 12_000
	for i := range rows {
		fmt.Fprintf(&b, "import,%06d,%d,%s\n", i, i, strings.Repeat("x", 400))
	}
	b.WriteString("import,bad,not a number,\n")
	file := filepath.Join(t.TempDir(), "big.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.open("/ui/transfer?account=" + s.account + "&table=Big")
	do(p, chromedp.SetUploadFiles(`#file`, []string{file}))
	p.press("More")
	p.press("Skip rows that cannot be imported")
	call(p, network.Enable, network.EnableParams{})
	block := func(on bool) {
		t.Helper()
		second := &network.BlockPattern{URLPattern: "*://*:*/ui/api/import/data?*offset=4194304*", Block: on}
		call(p, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{second}})
	}
	block(true)
	p.js(`window.seen = []; new MutationObserver(() => seen.push(document.querySelector("#import-job").innerText)).observe(
		document.querySelector("#import-job"), { subtree: true, childList: true })`)
	p.press("Import")
	p.wait(one("#resume"))
	if text := p.text("#import-job"); !strings.Contains(text, "4.0 MiB of") {
		t.Errorf("the page says %q", text)
	}
	block(false)
	p.press("Continue")
	p.wait(`document.querySelector("#import-job").innerText.includes("done")`)
	if !eval[bool](p, `seen.some((text) => /[1-9][\d,]* rows read, 0 entities stored, [\d.]+ [KM]iB of [\d.]+ MiB in /.test(text))`) {
		t.Errorf("during the import the page showed %q", eval[[]string](p, "seen"))
	}
	text := p.text("#import-job")
	if !strings.Contains(text, "12,000 entities") || !strings.Contains(text, "1 skipped") {
		t.Errorf("the page says %q", text)
	}
	p.press("Skipped rows")
	if text := p.text("#import-job"); !strings.Contains(text, "12002") {
		t.Errorf("the skipped rows are %q", text)
	}
	if got := readEntity(t, s, "Big", "import", fmt.Sprintf("%06d", rows-1))["N"]; got != float64(rows-1) {
		t.Errorf("the last entity has %v", got)
	}
}

// The page makes policies and signatures, and explains them; a signature works as it says.
func TestExplorerAccess(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(30), "Other": orders(1)})
	p.open("/ui/access?account=" + s.account + "&table=Orders")
	p.press("Add a policy")
	p.press("Save policies")
	p.wait(`document.querySelector("#policies .notice.error")?.innerText.includes("needs a name")`)
	p.enter(`.policy input`, "readers")
	p.press("Save policies")
	p.wait(`document.querySelector("#toast").innerText.includes("Saved")`)
	p.open("/ui/access?account=" + s.account + "&table=Orders")
	p.wait(`document.querySelector(".policy input")?.value === "readers" && !document.querySelector("#policies .notice.error")`)
	acl := must(s.service(t).NewClient("Orders").GetAccessPolicy(t.Context(), nil))(t)
	if len(acl.SignedIdentifiers) != 1 || *acl.SignedIdentifiers[0].ID != "readers" || *acl.SignedIdentifiers[0].AccessPolicy.Permission != "r" {
		t.Errorf("the server has %v", acl.SignedIdentifiers)
	}

	p.enter(`#sas input[name="srk"]`, "1")
	p.press("Make the signature")
	p.wait(`document.querySelector("#signature .notice.error")?.innerText.endsWith("srk needs spk")`)
	p.enter(`#sas input[name="srk"]`, "")
	p.enter(`#sas input[name="spk"]`, "p01")
	p.enter(`#sas input[name="epk"]`, "p01")
	p.press("Make the signature")
	p.wait(`document.querySelector("#signature h3")`)
	if text := p.text("#signature"); !strings.Contains(text, "read") || !strings.Contains(text, "p01") || !strings.Contains(text, "http") {
		t.Errorf("the explanation is %q", text)
	}
	link := eval[string](p, `[...document.querySelectorAll("#signature label")].find((l) => l.innerText.startsWith("URL")).querySelector("input").value`)
	c := must(aztables.NewClientWithNoCredential(link, options()))(t)
	must(c.GetEntity(t.Context(), "p01", "010", nil))(t)
	if _, err := c.GetEntity(t.Context(), "p02", "020", nil); err == nil {
		t.Error("the signature reads a key outside its range")
	}
	if _, err := c.DeleteEntity(t.Context(), "p01", "010", nil); err == nil {
		t.Error("the signature for reading deletes")
	}

	// A key can begin and end with blanks.
	p.enter(`#sas input[name="spk"]`, " p01 ")
	p.press("Make the signature")
	p.wait(`[...document.querySelectorAll("#signature input")].some((i) => new URLSearchParams(i.value).get("spk") === " p01 ")`)

	// Somebody logs in with it and may do no more.
	_, query, _ := strings.Cut(link, "?")
	other := newTab(t, s.admin)
	other.open("/ui/")
	other.enter("#account", s.account)
	other.press("a shared access signature")
	other.enter("#secret", query)
	other.press("Log in")
	other.wait(`[...document.querySelectorAll(".table-link")].map((a) => a.textContent).join() === "Orders"`)
	other.openTable(s, "Orders", "")
	if got := len(other.rows()); got != 10 {
		t.Errorf("a session by the signature shows %d rows, want 10", got)
	}
	other.wait(`document.querySelector("#new").disabled`) // a session for reading makes no entity
	other.keys("n")
	if eval[bool](other, `Boolean(document.querySelector("dialog"))`) {
		t.Error("a session for reading has the editor of a new entity")
	}
	other.open("/ui/engine")
	other.wait(`document.querySelector("#state").innerText === "A signature for a table does not show the engine."`)
	other.openTable(s, "Other", "")
	if text := other.text("#grid"); !strings.Contains(text, "Authorization") || !strings.Contains(text, "Choose a table") {
		t.Errorf("another table shows %q", text)
	}
}

// A wrong key has no access, and neither has a session after its end.
func TestExplorerLogin(t *testing.T) {
	s, p := explorer(t, map[string]string{"Orders": orders(3)})
	if got := eval[string](p, `document.cookie`); got != "" {
		t.Errorf("scripts see the cookie %q", got)
	}
	p.openTable(s, "Orders", "Items eq 1")
	address := eval[string](p, `location.pathname + location.search`)
	p.press("Log out")
	p.wait(`location.pathname === "/ui/login"`)
	p.open(address)
	p.wait(`location.pathname === "/ui/login"`)
	p.enter("#account", s.account)
	p.enter("#secret", strings.Repeat("A", 86)+"==")
	p.press("Log in")
	p.wait(one("#problem .notice.error"))
	p.enter("#secret", s.key)
	p.press("Log in")
	p.wait(fmt.Sprintf(`location.pathname + location.search === %q`, address))
	p.shown()
	if text := eval[string](p, `document.documentElement.outerHTML`); strings.Contains(text, s.key) {
		t.Error("the page has the key")
	}
	p.open("/ui/login?next=" + "//example.com/")
	p.enter("#account", s.account)
	p.enter("#secret", s.key)
	p.press("Log in")
	p.wait(`location.pathname === "/ui/" && location.host === new URL(` + quote(p.base) + `).host`)
}
