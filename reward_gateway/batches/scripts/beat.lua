-- Note how far a batch is.
-- KEYS[1] the record
-- ARGV    home, then field, value, ...
-- Returns 1 while the batch runs and this home holds it, else 0 and nothing is written.
local found = redis.call('HMGET', KEYS[1], 'home', 'state')
if found[1] ~= ARGV[1] or found[2] ~= 'running' then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
