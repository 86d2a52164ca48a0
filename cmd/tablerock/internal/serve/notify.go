package serve

import "github.com/coreos/go-systemd/v22/daemon"

// The states of a server that systemd knows.
const (
	stateReady     = daemon.SdNotifyReady
	stateReloading = daemon.SdNotifyReloading
	stateStopping  = daemon.SdNotifyStopping
)

// notify tells systemd the state of the server, if systemd started it with Type=notify.
func (s *service) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd does not know the state of the server", "state", state, "err", err)
	}
}
