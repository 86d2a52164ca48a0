package explorer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var embedded embed.FS

// pages are the templates and assets.
type pages struct {
	version string
	tag     string // of the content of all assets
	byName  map[string]*template.Template
	assets  map[string]*asset
}

// asset is a file that does not change.
type asset struct {
	contentType string
	plain, zip  []byte
}

// assetTypes are the types of assets, which do not depend on the machine.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
	".ico": "image/x-icon", ".json": "application/json",
}

func loadPages(version string) (*pages, error) {
	p := &pages{version: version, byName: map[string]*template.Template{}, assets: map[string]*asset{}}
	layout, err := template.ParseFS(embedded, "assets/layout.html")
	if err != nil {
		return nil, fmt.Errorf("parse the layout: %w", err)
	}
	sum := sha256.New()
	z, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // the level is valid
	err = fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d ", name, len(text))
		sum.Write(text)
		name = strings.TrimPrefix(name, "assets/")
		if page, ok := strings.CutPrefix(name, "pages/"); ok {
			t := template.Must(layout.Clone())
			if _, err := t.New(page).Parse(string(text)); err != nil {
				return fmt.Errorf("parse page %s: %w", page, err)
			}
			p.byName[strings.TrimSuffix(page, ".html")] = t
		} else if kind := assetTypes[path.Ext(name)]; kind != "" {
			p.assets[name] = newAsset(kind, text, z)
		}
		return nil
	})
	p.tag = hex.EncodeToString(sum.Sum(nil))[:16]
	return p, err
}

// newAsset compresses an asset with z, because a writer of its own takes 0.8 MB.
func newAsset(contentType string, text []byte, z *gzip.Writer) *asset {
	var b bytes.Buffer
	z.Reset(&b)
	_, _ = z.Write(text) // a Buffer accepts everything
	_ = z.Close()
	return &asset{contentType, text, b.Bytes()}
}

// serveAsset serves an asset. A path with another tag is of another build; the module that
// names it would not fit.
func (p *pages) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := p.assets[r.PathValue("file")]
	if a == nil || r.PathValue("tag") != p.tag {
		http.Error(w, "no such asset", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Add("Vary", "Accept-Encoding")
	body := a.plain
	if len(a.zip) < len(a.plain) && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = a.zip
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the client is gone
}

const (
	indexPage = "index"
	loginPage = "login"
	errorPage = "error"
)

// servePage serves a page.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("page")
	if name == "" {
		name = indexPage
	}
	data := Page{Name: name, Version: h.o.Version, Assets: h.pages.assetPath()}
	if h.pages.byName[name] == nil || name == errorPage {
		h.fail(w, r, Refuse(http.StatusNotFound, "NotFound", "There is no such page."))
		return
	}
	if s := h.sessionOf(r); s != nil {
		data.Session, data.CSRF = h.describe(s), s.CSRF
	} else if name != loginPage {
		// The page of the login accepts paths of this server only.
		next := url.Values{"next": {r.URL.RequestURI()}}
		http.Redirect(w, r, Root+loginPage+"?"+next.Encode(), http.StatusSeeOther)
		return
	}
	h.pages.render(w, r, http.StatusOK, name, &data)
}

func (p *pages) assetPath() string { return Root + "assets/" + p.tag + "/" }

// render sends a page.
func (p *pages) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var b bytes.Buffer
	if err := p.byName[name].ExecuteTemplate(&b, "layout.html", data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	sendText(w, r, status, "text/html; charset=utf-8", b.Bytes())
}

// serveError sends the page of an error.
func (p *pages) serveError(w http.ResponseWriter, r *http.Request, status int, message string) {
	p.render(w, r, status, errorPage, &errorData{Page{Name: errorPage, Version: p.version, Assets: p.assetPath()}, status, message})
}

// errorData is the data of the page of an error.
type errorData struct {
	Page
	Status  int
	Message string
}
