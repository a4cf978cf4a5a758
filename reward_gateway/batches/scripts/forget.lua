-- Remove the record of a batch that came to nothing, so that its id can be used again.
-- KEYS[1] the record
-- ARGV    home
-- Returns 1 when it was removed; one that has ended, or that another home holds, stays.
local found = redis.call('HMGET', KEYS[1], 'home', 'state')
if found[1] ~= ARGV[1] or found[2] ~= 'running' then
  return 0
end
return redis.call('DEL', KEYS[1])
