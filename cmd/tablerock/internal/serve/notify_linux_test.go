package serve

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestNotify reads what a server tells systemd: that it is ready, that SIGHUP begins and
// ends a reload, and that it stops.
func TestNotify(t *testing.T) {
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", at.Name)
	next := func() string {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	r := start(t)
	if got := next(); got != "READY=1" {
		t.Errorf("the first state is %q, want READY=1", got)
	}
	r.hangUp(t, "there is no accounts file")
	if got, then := next(), next(); got != "RELOADING=1" || then != "READY=1" {
		t.Errorf("SIGHUP: the states are %q and %q, want RELOADING=1 and READY=1", got, then)
	}
	r.stop()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("the last state is %q, want STOPPING=1", got)
	}
}

// TestNotifyFails starts a server whose service manager does not listen: it serves.
func TestNotifyFails(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "missing"))
	r := start(t)
	r.stderr.waitFor(t, "systemd does not know the state of the server", 1)
	if got := r.status(t, developmentAccount, developmentKey); got != 200 {
		t.Errorf("a query returns %d, want 200", got)
	}
}
