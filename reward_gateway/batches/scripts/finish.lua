-- End a batch once: only while it runs and only by the gateway that holds it.
-- KEYS[1] the record
-- ARGV    home ('' for any), lifetime in ms, then field, value, ...
-- Returns 1 when it was ended now.
local found = redis.call('HMGET', KEYS[1], 'home', 'state')
if found[2] ~= 'running' or (ARGV[1] ~= '' and found[1] ~= ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('HDEL', KEYS[1], 'request')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
