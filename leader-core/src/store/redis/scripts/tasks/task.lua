-- Reads tasks.
-- ARGV: 1 '1' with what they carry, or ''; then tasks
-- Gives: for each: status, lane, created, due, ended or '', unique key, attempts, of one that runs 'fence began heard holder' or '', the
--        lines of its attempts, '1' with what it carries or '', that
local answer = {}
local records, gone = {}, {}
for i = 2, #ARGV do
  records[i] = call('HGET', tasks, ARGV[i])
  if not records[i] then
    gone[#gone + 1] = ARGV[i]
  end
end
local all_ended = find_all_ended(gone)
for i = 2, #ARGV do
  local task = ARGV[i]
  local record = records[i]
  local lane, created, due, _, unique = read_head(record or '')
  local told = {}
  if lane then
    local s = read_state(call('HGET', attempts, task) or '')
    due = s and s.due ~= '-' and s.due or due
    local status, ended, runs = 'dispatched', '', ''
    if s and s.status == 'r' then
      status = 'running'
      runs = concat({ s.fence, s.began, instant_of(tonumber(call('ZSCORE', running, task) or s.began)), s.holder }, ' ')
    elseif s and s.status == 'd' then
      status = 'dead'
      ended = instant_of(tonumber(call('ZSCORE', prefix .. 'dead', task) or now))
    elseif own('ZSCORE', bucket(lane, tonumber(due)), task) then
      status = s and s.attempt ~= '0' and 'failed' or 'pending'
    end
    local carries = ARGV[1] ~= ''
    told = { status, lane, created, due, ended, unique, s and s.attempt or '0', runs, s and s.history or '', carries and '1' or '',
      carries and match(record, '\n(.*)$') or '' }
  elseif not record then
    local status, ended, s = read_ended(all_ended[task])
    if s then
      lane, created, due, _, unique = read_head(s.head)
      if s.status == 'r' then
        -- As it ran, and well: there was nothing to add.
        add_history(s, 'ok', '', ended)
      end
      told = { status, lane, created, s.due ~= '-' and s.due or due, ended, unique, s.attempt, '', s.history, '', '' }
    end
  end
  answer[i - 1] = told
end
return answer
