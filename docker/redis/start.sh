#!/bin/sh
# Writes the users' password digests into the ACL file, then becomes the server. Needs REDIS_GATEWAY_PASSWORD and
# REDIS_WORKER_PASSWORD. A user per role: workers reach the queue's keys only, not batches, answers or cached verdicts.
set -eu
here=$(dirname "$0")
digest() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
umask 077
sed -e "s/@GATEWAY@/$(digest "${REDIS_GATEWAY_PASSWORD:?}")/" -e "s/@WORKER@/$(digest "${REDIS_WORKER_PASSWORD:?}")/" \
    "$here/users.acl" > "${REDIS_ACL_FILE:-/run/redis/users.acl}"
unset REDIS_GATEWAY_PASSWORD REDIS_WORKER_PASSWORD
exec redis-server "$here/redis.conf" "$@"
