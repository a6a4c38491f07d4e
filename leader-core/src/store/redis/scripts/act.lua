-- Keeps an act of control: a pause, its end, a request for runs, or its withdrawal. A pause that skips and has ended is kept for a while:
-- the ticks that fell due in it may be decided later.
-- KEYS: 1 state, 2 control, 3 acts, 4 coverage
-- ARGV: 1 what, 2 job or '' = the group, 3 gap, first instant (ms) or request, 4 until or last instant (ms) or '', 5 who, 6 why,
--       7 channel, 8 group, 9 most open requests, 10 acts kept, 11 ended pauses kept
-- Gives: 'done' with number, instant (ms), the pause that was there before or '', and the job by the name that it has; 'nothing'; 'full' with how many requests are open;
--        'untimely' with the server's time
local call, format, match, concat = redis.call, string.format, string.match, table.concat
local what, job, first, last, by, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- One that goes on under another name; a circle of names is passed over.
local kept_as = job
for _ = 0, 16 do
  local moved = redis.pcall('HGET', KEYS[4], kept_as)
  local name = type(moved) == 'string' and match(moved, '^>(.+)$')
  if not name or not is_name(name) then
    job = kept_as
    break
  end
  kept_as = name
end
local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)
local at = format('%.0f', now)
local state = call('HMGET', KEYS[1], 'control', 'triggered')

local fields, kept, open, ended = call('HGETALL', KEYS[2]), {}, 0, {}

-- A pause is over, at an instant.
local function over(field, line, ends)
  call('HDEL', KEYS[2], field)
  local id, gap, since, rest = match(line, '^(%d+)|(%a+)|(%d+)|%d*(|.*)$')
  if gap == 'skip' and tonumber(since) < tonumber(ends) then
    call('HSET', KEYS[2], 'e:' .. id, concat({ string.sub(field, 3), id, gap, since, ends }, '|') .. rest)
    ended[#ended + 1] = tonumber(id)
  end
end

for i = 1, #fields, 2 do
  local field, line = fields[i], fields[i + 1]
  local ends = match(field, '^p:') and match(line, '^%d+|%a+|%d+|(%d+)|')
  if ends and tonumber(ends) <= now then
    over(field, line, ends)
  else
    kept[field] = line
    open = open + (match(field, '^r:%d+$') and 1 or 0)
    ended[#ended + 1] = tonumber(match(field, '^e:(%d+)$'))
  end
end

if what == 'pause' and last ~= '' and tonumber(last) <= now or what == 'backfill' and tonumber(last) > now then
  return { 'untimely', at }
end
if (what == 'trigger' or what == 'backfill') and open >= tonumber(ARGV[9]) then
  return { 'full', format('%.0f', open) }
end
local field = what == 'cancel' and 'r:' .. first or 'p:' .. job
if (what == 'resume' or what == 'cancel') and not kept[field] or (what == 'trigger' or what == 'backfill') and job == '' then
  return { 'nothing' }
end

local number = format('%.0f', math.max((read_number(state[1]) or 0) + 1, micros))
local before = ''
if what == 'pause' then
  before = kept[field] or ''
  over(field, before, at)
  call('HSET', KEYS[2], field, concat({ number, first, at, last, by, reason }, '|'))
elseif what == 'resume' then
  before = kept[field]
  over(field, before, at)
elseif what == 'cancel' then
  call('HDEL', KEYS[2], field)
else
  if what == 'trigger' then
    -- The instant names the run: no two of a group have the same.
    at = format('%.0f', math.max((read_instant(state[2]) or 0) + 1, now))
    first, last = at, at
    call('HSET', KEYS[1], 'triggered', at)
  end
  local origin = what == 'trigger' and 'manual' or 'backfill'
  call('HSET', KEYS[2], 'r:' .. number, concat({ origin, job, first, last, '', at, by, reason }, '|'))
end
table.sort(ended)
for i = 1, #ended - tonumber(ARGV[11]) do
  call('HDEL', KEYS[2], 'e:' .. format('%.0f', ended[i]))
end
call('HSET', KEYS[1], 'control', number, 'controlled', call('HLEN', KEYS[2]))
if ask_anew(KEYS[3], 'LPUSH', KEYS[3], concat({ number, at, what, job, first, last, by, reason }, '|')) > tonumber(ARGV[10]) then
  call('LTRIM', KEYS[3], 0, tonumber(ARGV[10]) - 1)
end
redis.pcall('PUBLISH', ARGV[7], 'controlled ' .. ARGV[8] .. ' ' .. number)
return { 'done', number, at, before, job }
