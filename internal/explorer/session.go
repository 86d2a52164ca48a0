package explorer

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/sessions"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/webguard"
)

// session is the login of a browser.
type session = sessions.Session

// maxSAS limits the text of a signature, which a session keeps.
const maxSAS = 32 << 10

func (x *exchange) login() (any, error) {
	var in struct{ Once, Account, Key, SAS string }
	x.r.Body = http.MaxBytesReader(x.w, x.r.Body, 2*maxSAS) // anybody can send it
	if err := x.read(&in); err != nil {
		return nil, err
	}
	_, network := webguard.SourceOf(x.r)
	failures := x.h.failures
	if wait := failures.Begin(network); wait > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		return nil, Refuse(http.StatusTooManyRequests, "TooManyLogins", "Too many logins failed. Wait before the next one.")
	}
	one := &session{Account: in.Account}
	ok := false
	switch {
	case in.Once != "":
		one.Account, one.Kind = "", sessions.ByLink
		ok = x.h.sessions.UseLink(in.Once)
	case in.Key != "":
		var err error
		one.Kind = sessions.ByKey
		one.Key, err = sharedkey.NewWeakCredential(in.Account, strings.TrimSpace(in.Key))
		ok = err == nil && x.h.verify(x.r, one) == nil
	case in.SAS != "" && len(in.SAS) <= maxSAS:
		one.SAS = strings.TrimPrefix(strings.TrimSpace(in.SAS), "?")
		if q, err := url.ParseQuery(one.SAS); err == nil {
			one.Table = q.Get("tn")
		}
		ok = x.h.verify(x.r, one) == nil
	}
	if !ok {
		return nil, Refuse(http.StatusForbidden, "LoginFailed", "The link is used or too old, or the account, key or signature is wrong.")
	}
	failures.Succeed(network)
	x.end() // no browser can use it any more, and its jobs would go on
	http.SetCookie(x.w, x.h.cookie(x.h.sessions.Begin(one), 0))
	x.s = one
	return x.session()
}

// verify sets the grant of a session of an account. It fails when the key or the signature
// is not valid any more.
func (h *Handler) verify(r *http.Request, one *session) (err error) {
	addr, _ := webguard.SourceOf(r)
	q := &sharedkey.Request{
		Method: http.MethodGet, Path: "/" + one.Account + "/Tables", RawQuery: one.SAS, Account: one.Account,
		Header: http.Header{}, TLS: r.TLS != nil, Remote: addr,
	}
	if one.Key != nil {
		q.Header.Set("X-Ms-Date", h.o.Now().UTC().Format(http.TimeFormat))
		text, err := one.Key.SharedKey(q)
		if err != nil {
			return err
		}
		q.Header.Set("Authorization", text)
	}
	one.Grant, err = h.verifier.Verify(r.Context(), q)
	return err
}

// recheck returns an error if a session may not do an action on a table any more.
func (h *Handler) recheck(r *http.Request, one *session, may sharedkey.Action, table string) error {
	if one.Account == "" || one.Ctx.Err() != nil {
		return one.Ctx.Err()
	}
	if err := h.verify(r, one); err != nil {
		return err
	}
	return one.Grant.Allow(may, table)
}

// sessionOf returns the session of a request, nil if there is none.
func (h *Handler) sessionOf(r *http.Request) *session {
	for _, c := range r.CookiesNamed(h.cookieName()) {
		one := h.sessions.Find(c.Value)
		if one != nil && (one.Account == "" || h.verify(r, one) == nil) {
			return one
		}
	}
	return nil
}

// cookieName has the prefix by which browsers refuse a cookie that another name of the same
// domain set; it needs TLS.
func (h *Handler) cookieName() string {
	if h.o.Secure {
		return "__Host-" + h.o.Cookie
	}
	return h.o.Cookie
}

func (h *Handler) cookie(token string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: h.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: h.o.Secure, SameSite: http.SameSiteStrictMode, MaxAge: maxAge,
	}
}

// end ends the session whose cookie the browser has.
func (x *exchange) end() {
	for _, c := range x.r.CookiesNamed(x.h.cookieName()) {
		x.h.sessions.End(c.Value)
	}
}

func (x *exchange) logout() (any, error) {
	x.end()
	http.SetCookie(x.w, x.h.cookie("", -1))
	return struct{}{}, nil
}

func (x *exchange) session() (any, error) { return x.h.describe(x.s), nil }

func (h *Handler) describe(s *session) *Session {
	kind := [...]string{sessions.BySignature: "sas", sessions.ByKey: "key", sessions.ByLink: "owner"}[s.Kind]
	return &Session{Kind: kind, Account: s.Account, Table: s.Table, Expires: s.Begun.Add(sessions.Lifetime), CSRF: s.CSRF}
}
