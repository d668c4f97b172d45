#!/bin/sh
# For programs that take a secret from the environment alone: NAME_FILE=/run/secrets/x becomes NAME, in this process and
# in no file, image or `docker inspect`. fedbench's own keys need it not: it reads NAME_FILE itself.
set -eu
for name in PREFECT_SERVER_DATABASE_PASSWORD PREFECT_SERVER_API_AUTH_STRING PREFECT_API_AUTH_STRING \
            POSTGRE_PASSWORD SECRET_KEY; do
  eval "file=\${${name}_FILE:-}"
  if [ -n "$file" ]; then
    [ -r "$file" ] || { echo "entrypoint: ${name}_FILE is $file, which cannot be read" >&2; exit 78; }
    export "$name=$(cat "$file")"
    unset "${name}_FILE"
  fi
done
exec "$@"
