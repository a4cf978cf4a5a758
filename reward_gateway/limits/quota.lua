-- quota: one caller takes what it wants to use, or hears when there will be enough.
--
-- KEYS[1]: a hash. requests, candidates: until when the rate of these is used up (ms); @$subscriber: candidates of a batch in
-- flight, "count till_ms".
-- ARGV: rate (requests or candidates), amount, allowed a minute (0: any), most in flight (0: any), subscriber (empty: nothing
-- is in flight), hold_ms.
-- Answer: "ok", or what is used up, "rate" with the ms to wait or "flight" with the amount that is too much.
--
-- The rate is the generic cell rate algorithm (ITU-T I.371) with a burst of one minute. Who owes nothing may take more than
-- a minute's worth at once, and owes it then; else such a batch could never be sent.

local MINUTE = 60000

local clock = redis.call('TIME')
local now = math.floor(clock[1] * 1000 + clock[2] / 1000)
local rate, amount, a_minute = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most, subscriber, hold = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])

if most > 0 then
  local held = 0
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) == '@' then
      local count, till = string.match(all[i + 1], '^(%d+) (%d+)$')
      if tonumber(till) <= now then
        redis.call('HDEL', KEYS[1], all[i])
      elseif all[i] ~= '@' .. subscriber then
        held = held + tonumber(count)
      end
    end
  end
  if held > 0 and held + amount > most then
    return { 'flight', held + amount - most }
  end
end

if a_minute > 0 then
  local till = math.max(now, tonumber(redis.call('HGET', KEYS[1], rate) or 0))
  local after = till + amount * MINUTE / a_minute
  if till > now and after - now > MINUTE then
    return { 'rate', math.ceil(after - now - MINUTE) }
  end
  redis.call('HSET', KEYS[1], rate, string.format('%.0f', after))
  hold = math.max(hold, after - now)
end

if subscriber ~= '' then
  redis.call('HSET', KEYS[1], '@' .. subscriber, string.format('%d %.0f', amount, now + hold))
end
if redis.call('PTTL', KEYS[1]) < hold then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', hold))
end
return { 'ok' }
