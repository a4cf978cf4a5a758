-- Create the record of a batch, or say what is there.
-- KEYS[1] the record (hash: digest, subscriber, home, durable, state, elapsed, progress, request, answer, problem)
-- ARGV    lifetime in ms, then field, value, ...
-- Returns 1 when the record was created, 0 when it was there before.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
