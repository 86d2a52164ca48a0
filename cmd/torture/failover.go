package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errNoCluster means that this machine cannot run a cluster.
var errNoCluster = errors.New("cannot run a cluster here")

// failoverFlags are the flags of torture failover.
type failoverFlags struct {
	seed                         uint64
	trials, writers, batches     int
	only, dir, programs, program string
	async, keep, list            bool
}

func failoverCommand() *cobra.Command {
	f := failoverFlags{}
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Hit a cluster of PostgreSQL with faults and check the servers in front of it",
		Long: `Start etcd, three nodes of PostgreSQL with Patroni in strict synchronous mode, and three
tablerock servers in front of them, all in one temporary folder. In each trial, clients
write and read through the servers, and a fault hits the cluster, which the seed selects.
Check that nothing acknowledged is lost, no batch is there in part, the operations of each
key are linearizable, no ETag comes twice for a key, and no Timestamp of a key goes back.
Reads over connections to a leader whose agent or whose processes were stopped may be old
until it knows that it is deposed: only there they are left out, and the longest such time
is printed.

With --async, commits do not wait for a standby, and the check must find lost batches:
otherwise it is blind, and the command fails.

The command needs Linux and Debian's apt-get, with which it downloads and unpacks the
programs, without installing them. Where it cannot, it exits with 7. As root it runs the
programs as the user postgres or nobody, and gives each node a volume in memory. At its end,
also after a failure or Ctrl-C, it ends all processes, unmounts the volumes and removes the
folder.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the first trial; the next one has the next seed")
	flags.IntVar(&f.trials, "trials", 20, "number of trials")
	flags.StringVar(&f.only, "only", "", "run only the faults whose name matches this `regexp`")
	flags.IntVar(&f.writers, "workers", 64, "writers of batches")
	flags.IntVar(&f.batches, "batches", 5000, "acknowledged batches of a trial, at least")
	flags.BoolVar(&f.async, "async", false, "run the negative control")
	flags.BoolVar(&f.list, "list", false, "print the names of the faults and end")
	flags.BoolVar(&f.keep, "keep", false, "keep the folder with the logs of a failed run")
	flags.StringVar(&f.dir, "dir", "", "parent `directory` of the folder (default: the system's directory for temporary files)")
	flags.StringVar(&f.programs, "packages", "", "`directory` of the unpacked packages, which the first run fills (default: in the folder)")
	flags.StringVar(&f.program, "program", "", "tablerock `program` (default: build it from the source of the working directory)")
	return cmd
}
