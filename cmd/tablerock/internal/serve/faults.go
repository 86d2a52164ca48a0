package serve

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
	"github.com/tablerock-db/tablerock/server/faults"
)

// checkFaults returns an error for invalid values of --faults and --seed. exposed is
// whether other machines can reach a listener.
func (c *Config) checkFaults(ctx context.Context, exposed bool) error {
	if c.FaultsFile == "" {
		if c.Seed != 0 {
			return usagef("--seed %d selects the failures of --faults: add --faults FILE", c.Seed)
		}
		return nil
	}
	if exposed {
		return usagef("--faults makes requests fail, so it is only for listeners on loopback: change --listen and --admin, or remove --faults")
	}
	text, err := openfile.Read(ctx, c.FaultsFile)
	if err != nil {
		return unreadable("--faults", err)
	}
	if c.rules, err = faults.Parse(text); err != nil {
		return usagef("--faults %s: %v", c.FaultsFile, err)
	}
	return nil
}

// failing returns next, whose requests fail by the rules of --faults.
func (s *service) failing(next http.Handler) (http.Handler, error) {
	if s.rules == nil {
		return next, nil
	}
	return faults.New(s.server, next, s.rules, faults.Options{Seed: s.Seed, Observe: func(f faults.Fault) {
		s.log.LogAttrs(context.Background(), slog.LevelInfo, "fault",
			slog.String("operation", f.Operation), slog.String("account", f.Account), slog.String("table", f.Table), slog.String("answer", f.String()))
	}})
}
