-- Give a running batch whose gateway is gone to another one.
-- KEYS[1] the record, KEYS[2] the sign of life of its old home
-- ARGV    old home, new home
-- Returns 1 when the new home has it now.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
local found = redis.call('HMGET', KEYS[1], 'home', 'state')
if found[1] ~= ARGV[1] or found[2] ~= 'running' then
  return 0
end
redis.call('HSET', KEYS[1], 'home', ARGV[2])
return 1
