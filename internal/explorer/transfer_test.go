package explorer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/store"
)

// upload imports a file in chunks, each of which it also sends at a wrong offset.
func (b *browser) upload(table, name, text string, chunk int, more object) explorer.Job {
	b.t.Helper()
	body := object{"account": "first", "table": table, "name": name, "size": len(text)}
	maps.Copy(body, more)
	var job struct{ Job string }
	b.want(http.StatusOK, &job, "import", body)
	for at := 0; at < len(text); {
		end := min(at+chunk, len(text))
		for _, offset := range []int{at + 1, at} {
			path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=%d", job.Job, offset)
			response, answer := b.send(http.MethodPost, path, text[at:end], "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
			if response.StatusCode == http.StatusConflict && (offset != at || strings.Contains(answer, "NotRunning")) ||
				response.StatusCode == http.StatusBadRequest && offset != at {
				continue
			}
			if response.StatusCode != http.StatusOK || offset != at {
				b.t.Fatalf("chunk at %d: %s %s", offset, response.Status, answer)
			}
		}
		at = end
	}
	return b.wait(job.Job)
}

// TestTransfer exports a table in each format and imports it again, in small chunks.
func TestTransfer(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 20, 50)
	b := s.owner()
	lines := func(table string) string {
		var job struct{ Job, URL string }
		b.want(http.StatusOK, &job, "export", object{"account": "first", "table": table, "name": "x.csv"})
		if j := b.wait(job.Job); j.State != "done" {
			t.Fatalf("the export is %+v", j)
		}
		_, text := b.send(http.MethodGet, job.URL, "", "Cookie", b.cookie)
		var keep []string
		for line := range strings.Lines(text) {
			cells := strings.Split(line, ",")
			keep = append(keep, cells[0]+","+cells[1]+","+cells[3]) // without the Timestamp
		}
		return strings.Join(keep, "")
	}
	want := lines("Tab")
	for i, name := range []string{"x.csv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz", "x.jsonl.zst"} {
		t.Run(name, func(t *testing.T) {
			var job struct{ Job, URL string }
			b.want(http.StatusOK, &job, "export", object{"account": "first", "table": "Tab", "name": name})
			j := b.wait(job.Job)
			response, text := b.send(http.MethodGet, job.URL, "", "Cookie", b.cookie)
			if j.State != "done" || j.Rows != 1000 || j.Size != int64(len(text)) || response.ContentLength != j.Size {
				t.Fatalf("the export of %d bytes is %+v", len(text), j)
			}
			etag := response.Header.Get("Etag")
			rest, end := b.send(http.MethodGet, job.URL, "", "Cookie", b.cookie, "Range", "bytes=1000-", "If-Range", etag)
			if rest.StatusCode != http.StatusPartialContent || end != text[1000:] {
				t.Errorf("the rest of an interrupted download: %s, %d bytes", rest.Status, len(end))
			}
			table := fmt.Sprint("Copy", i)
			if j := b.upload(table, name, text, 777, nil); j.State != "done" || j.Rows != 1000 || j.Received != int64(len(text)) {
				t.Fatalf("the import is %+v", j)
			}
			if lines(table) != want {
				t.Error("the copy differs")
			}
		})
	}
}

// TestTabs exports a table with tabs between the cells, which the name of the file or the
// format asks for, and imports the file.
func TestTabs(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	b := s.owner()
	want := edm.Entity{Key: edm.Key{Partition: "a,b", Row: "c,d"}, Properties: edm.Properties{{Name: "Text", Value: edm.String("tab\tcomma,quote\"line\nend")}}}
	if _, err := s.db.Apply(t.Context(), "Tab", store.Insert(want)); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ name, format string }{{"x.tsv", ""}, {"x.tsv.gz", ""}, {"x.txt", "tsv"}, {"x.tsv", "tsv"}} {
		var job struct{ Job, URL string }
		b.want(http.StatusOK, &job, "export", object{"account": "first", "table": "Tab", "name": c.name, "format": c.format})
		if j := b.wait(job.Job); j.State != "done" || j.Rows != 2 {
			t.Fatalf("the export %+v is %+v", c, j)
		}
		_, text := b.send(http.MethodGet, job.URL, "", "Cookie", b.cookie)
		if !strings.HasSuffix(c.name, ".gz") && !strings.HasPrefix(text, "PartitionKey\tRowKey\tTimestamp\t") {
			t.Errorf("the export %+v begins with %.50q", c, text)
		}
		table := fmt.Sprint("Copy", i)
		if j := b.upload(table, c.name, text, 100, object{"format": c.format}); j.State != "done" || j.Rows != 2 {
			t.Fatalf("the import %+v is %+v %+v", c, j, j.Failure)
		}
		err := s.db.View(t.Context(), table, want.Key, func(row edm.Row) error {
			if name, v := row.At(0); row.Len() != 1 || name != "Text" || !bytes.Equal(v.Bytes(), want.Properties[0].Value.Bytes()) {
				t.Errorf("the import %+v has %d properties, %s=%q", c, row.Len(), name, v.Bytes())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestChunkAfterLast sends a chunk to an import that has its whole file.
func TestChunkAfterLast(t *testing.T) {
	s := newSite(t)
	s.loading = make(chan struct{})
	b := s.owner()
	text := "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n"
	var job struct{ Job string }
	b.want(http.StatusOK, &job, "import", object{"account": "first", "table": "New", "name": "x.jsonl", "size": len(text)})
	for _, c := range []struct {
		offset int
		text   string
	}{{0, text}, {len(text), ""}, {len(text), "more"}} {
		path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=%d", job.Job, c.offset)
		response, answer := b.send(http.MethodPost, path, c.text, "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
		if want := fmt.Sprintf("{\"received\":%d}", len(text)); response.StatusCode != http.StatusOK || strings.TrimSpace(answer) != want {
			t.Errorf("%q at %d: %s %s", c.text, c.offset, response.Status, answer)
		}
	}
	close(s.loading)
	if j := b.wait(job.Job); j.State != "done" || j.Rows != 1 {
		t.Errorf("the import is %+v", j)
	}
}

// TestImportProgress sends the first half of a file: the job says how much of it was read, or
// for Parquet received, before anything is stored.
func TestImportProgress(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "{\"PartitionKey\":\"p\",\"RowKey\":\"%06d\"}\n", i)
	}
	begin := func(name string) (id string) {
		var job struct{ Job string }
		b.want(http.StatusOK, &job, "import", object{"account": "first", "table": "New", "name": name, "size": text.Len()})
		path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=0", job.Job)
		response, answer := b.send(http.MethodPost, path, text.String()[:text.Len()/2], "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("the first half: %s %s", response.Status, answer)
		}
		return job.Job
	}
	id := begin("x.jsonl")
	var j explorer.Job
	for deadline := time.After(time.Minute); j.Read == 0; {
		select {
		case <-time.After(time.Millisecond):
			b.want(http.StatusOK, &j, "job?id="+id, nil)
		case <-deadline:
			t.Fatalf("after the first half the job is %+v", j)
		}
	}
	if j.State != "running" || j.Read >= 2500 || j.Rows != 0 || j.Bytes == 0 || j.Bytes > j.Received {
		t.Errorf("after the first half the job is %+v", j)
	}
	id = begin("x.parquet")
	for deadline := time.After(time.Minute); j.State != "waiting"; {
		select {
		case <-time.After(time.Millisecond):
			b.want(http.StatusOK, &j, "job?id="+id, nil)
		case <-deadline:
			t.Fatalf("after half of a Parquet file the job is %+v", j)
		}
	}
	if j.Received != int64(text.Len()/2) || j.Bytes != 0 {
		t.Errorf("after half of a Parquet file the job is %+v", j)
	}
}

// TestChunkTooLong sends more than the file has. The import ends with the bytes of the file.
func TestChunkTooLong(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	text := "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n"
	id := b.startJob("import", object{"account": "first", "table": "New", "name": "x.jsonl", "size": len(text)})
	path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=0", id)
	response, _ := b.send(http.MethodPost, path, text+"more", "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a chunk that is too long: %s", response.Status)
	}
	if j := b.wait(id); j.State != "done" || j.Rows != 1 || j.Received != int64(len(text)) {
		t.Errorf("the import is %+v", j)
	}
}

// TestBadFiles imports files with faults.
func TestBadFiles(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	text := "PartitionKey,RowKey,N@Edm.Int32\np,1,1\np,2,x\np,3,3\n"
	j := b.upload("Tab", "x.csv", text, 10, nil)
	if j.State != "failed" || j.Failure == nil || !strings.Contains(j.Failure.Message, "x.csv:3") {
		t.Errorf("a bad cell: %+v %+v", j, j.Failure)
	}
	j = b.upload("Tab", "x.csv", text, 10, object{"skipBad": true})
	if j.State != "done" || j.Rows != 2 || j.Skipped != 1 || len(j.Bad) != 1 {
		t.Errorf("a bad cell that is skipped: %+v", j)
	}
	if j = b.upload("Tab", "x.jsonl", "", 10, nil); j.State != "done" || j.Rows != 0 {
		t.Errorf("an empty file: %+v", j)
	}
	for _, c := range []struct{ name, text, want string }{
		{"x.csv", "Key,RowKey\np,1\n", "no column \"PartitionKey\""},
		{"x.tsv", "PartitionKey,RowKey\np,1\n", "only one column"},
	} {
		j = b.upload("Tab", c.name, c.text, 5, nil)
		if j.State != "failed" || j.Failure == nil || j.Failure.Code != "InvalidFile" || !strings.Contains(j.Failure.Message, c.want) {
			t.Errorf("%s of %q: %+v %+v", c.name, c.text, j, j.Failure)
		}
	}
	if j = b.upload("Tab", "x.parquet", "PAR1 no PAR1", 5, nil); j.State != "failed" {
		t.Errorf("no Parquet: %+v", j)
	}
	for _, body := range []object{
		{"name": "x.csv", "size": -1},
		{"name": "x", "size": 1},
		{"name": "x.csv", "size": 1, "mode": "x"},
		{"name": "x.csv", "size": 1, "delimiter": "ab"},
		{"name": "x.csv", "size": 1, "format": "xml"},
		{"name": "x.parquet", "size": 1, "compression": "gz"},
	} {
		body["account"], body["table"] = "first", "Tab"
		b.want(http.StatusBadRequest, nil, "import", body)
	}
}

// TestJobsEnd cancels an import that waits for its file, and ends one with its session.
func TestJobsEnd(t *testing.T) {
	s := newSite(t)
	b, other := s.owner(), s.owner()
	begin := func() string {
		var job struct{ Job string }
		b.want(http.StatusOK, &job, "import", object{"account": "first", "table": "Tab", "name": "x.jsonl", "size": 1000})
		return job.Job
	}
	id := begin()
	other.want(http.StatusNotFound, nil, "job?id="+id, nil)
	other.want(http.StatusNotFound, nil, "job/cancel", object{"id": id})
	b.want(http.StatusOK, nil, "job/cancel", object{"id": id})
	if j := b.wait(id); j.State != "canceled" {
		t.Errorf("a canceled job is %+v", j)
	}
	begin()
	b.want(http.StatusOK, nil, "logout", object{})
	b.want(http.StatusUnauthorized, nil, "jobs", nil)
	done := make(chan struct{})
	go func() { s.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("jobs outlive their session")
	}
}

// TestTablesConfirmed drops a table only with its name typed again.
func TestTablesConfirmed(t *testing.T) {
	s := newSite(t)
	b := s.owner()
	b.want(http.StatusOK, nil, "tables/create", object{"account": "second", "table": "Mine"})
	b.want(http.StatusConflict, nil, "tables/create", object{"account": "second", "table": "mine"})
	b.want(http.StatusBadRequest, nil, "tables/delete", object{"account": "second", "table": "Mine", "typed": "mine"})
	b.want(http.StatusOK, nil, "tables/delete", object{"account": "second", "table": "Mine", "typed": "Mine"})
	b.want(http.StatusNotFound, nil, "tables/delete", object{"account": "second", "table": "Mine", "typed": "Mine"})
	b.want(http.StatusBadRequest, nil, "tables/create", object{"account": "second", "table": "New", "unknown": true})
}

// TestSignatures makes signatures and uses them.
func TestSignatures(t *testing.T) {
	s := newSite(t)
	s.fill("Tab", 1, 1)
	b := s.owner()
	expiry := s.time().Add(time.Hour).UTC().Format(time.RFC3339)
	var made explorer.SAS
	b.want(http.StatusOK, &made, "sas", object{"account": "first", "kind": "table", "table": "Tab", "fields": object{"sp": "dr", "se": expiry}})
	if !strings.Contains(made.Query, "sp=rd") || len(made.Summary) < 2 || len(made.Warnings) != 2 ||
		!strings.HasPrefix(made.URL, "http://127.0.0.1:1/first/Tab?") {
		t.Errorf("the signature is %+v", made)
	}
	text, err := json.Marshal(made)
	if err != nil || strings.Contains(string(text), key) {
		t.Errorf("the key is in %s", text)
	}
	s.login(map[string]string{"account": "first", "sas": made.Query}).want(http.StatusOK, nil, "entities?a=first&t=Tab", nil)
	for _, fields := range []object{{"sp": "x", "se": expiry}, {"sp": "r"}, {"sp": "r", "se": expiry, "sig": "x"}, {"sp": "r", "se": "tomorrow"}} {
		b.want(http.StatusBadRequest, nil, "sas", object{"account": "first", "kind": "table", "table": "Tab", "fields": fields})
	}
	var fields map[string][]struct{ Name, Meaning string }
	b.want(http.StatusOK, &fields, "sas/fields", nil)
	for kind, list := range fields {
		for _, f := range list {
			if f.Name == "" || f.Meaning == "" {
				t.Errorf("%s: the field %+v has no meaning", kind, f)
			}
		}
	}
}
