#!/bin/sh
# Makes the files that compose.yaml takes its secrets from, as far as they are not there. What only you have (keys of
# providers, Label Studio's token) is made empty, for you to fill.
set -eu
umask 077
folder="$(cd "$(dirname "$0")" && pwd)/secrets"
mkdir -p "$folder"
cd "$folder"

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make() { [ -e "$1" ] || printf '%s' "$2" > "$1"; }

make prefect_db_password "$(random)"
make prefect_auth "fedbench:$(random)"
make studio_db_password "$(random)"
make studio_secret_key "$(random)$(random)"
make studio_token ""
make gemini_api_key ""
if [ ! -e aws_credentials ]; then
  id="$(random)" secret="$(random)"
  printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$id" "$secret" > aws_credentials
  printf '{"identities": [{"name": "fedbench", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Admin"]}]}\n' \
    "$id" "$secret" > store_identities
fi
# Containers' users are not this one, so the files can be read by all; the folder can be entered by its owner alone.
chmod 0444 ./*
echo "secrets lie in $folder"
