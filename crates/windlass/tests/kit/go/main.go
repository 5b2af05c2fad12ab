// Artifacts as the Go tools read and write them, by the libraries that those tools are made of: a test of
// ours cannot believe our own reader of our own writer.
//
//	read REF            copies an artifact from a registry, checks all of it and tells what is in it
//	write FORM COMPRESSION REF DIR
//	                    makes an artifact of a folder with a Kitfile and pushes it
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"oras.land/oras-go/v2/registry/remote"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	var told any
	var err error
	switch {
	case len(arguments) == 2 && arguments[0] == "read":
		told, err = read(ctx, arguments[1])
	case len(arguments) == 5 && arguments[0] == "write":
		told, err = write(ctx, arguments[1], arguments[2], arguments[3], arguments[4])
	default:
		err = fmt.Errorf("usage: read REF | write FORM COMPRESSION REF DIR")
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

// In a registry without TLS, as those of the tests are.
func repository(reference string) (*remote.Repository, error) {
	found, err := remote.NewRepository(reference)
	if err != nil {
		return nil, fmt.Errorf("cannot understand %s: %w", reference, err)
	}
	found.PlainHTTP = true
	return found, nil
}
