-- raise: waiting jobs get a higher priority, which they keep whoever leaves.
--
-- ARGV: keep_ms, then key, priority for each job. Jobs that run, ended or have that priority are left alone.
-- Answer: the number of jobs raised.

local keep = tonumber(ARGV[1])
local raised = 0
may_grow()
for i = 2, #ARGV, 2 do
  local key, priority = ARGV[i], tonumber(ARGV[i + 1])
  local job = redis.call('HMGET', root .. 'job:' .. key, 'line', 'seq')
  if job[1] and job[1] ~= '' and priority > priority_of(job[1], level_of(job[1])) then
    redis.call('HSET', root .. 'job:' .. key, 'floor', priority)
    replace(key, job[1], priority, job[2], keep)
    raised = raised + 1
  end
end
return raised
