-- Note how far a batch is.
-- KEYS[1] the record
-- ARGV    home, then field, value, ...
-- Returns 1 while the batch runs and this home holds it; else nothing is written, and 0 says that it has ended or is
-- another's, -1 that there is no record.
local found = redis.call('HMGET', KEYS[1], 'home', 'state')
if not found[2] then
  return -1
end
if found[1] ~= ARGV[1] or found[2] ~= 'running' then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
