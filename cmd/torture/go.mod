module github.com/tablerock-db/tablerock/cmd/torture

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/spf13/cobra v1.10.2
	github.com/tablerock-db/tablerock v0.0.0
)

require (
	github.com/google/btree v1.1.3 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/tablerock-db/tablerock => ../..
